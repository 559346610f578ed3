"""The shared parts of the tables: tasks, skills, the general score, lists of heads."""


def test_skills_come_from_the_metadata(study):
    """Tasks of one capability are neither controls of each other nor in the general score."""
    assert study.same_skill("addition") == ("addition_words",)
    assert "addition_words" not in study.general("addition")
    assert study.general("capitals")[:2] == ("addition", "addition_words")
    assert study.skill("gsm8k") == study.skill("arithmetic") == "math"


def test_general_is_the_papers_where_it_is_measured(study):
    """The general score uses boolq and mmlu, without mmlu for knowledge tasks."""
    study.tasks = ("gsm8k", "arithmetic", "boolq", "mmlu", "wmdp_bio", "capitals")
    try:
        assert study.general("gsm8k") == ("boolq", "mmlu")
        assert study.general("wmdp_bio") == ("boolq",)
        assert study.knowledge == ("mmlu", "wmdp_bio")
    finally:
        study.tasks = tuple(study.options.tasks)
