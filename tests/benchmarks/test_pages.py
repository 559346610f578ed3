"""Sections and marked texts of pages are replaced; everything around them stays."""

import pytest

PAGE = "# Page\n\n## First\n\nold\n\n### Part\n\nold\n\n## Second\n\ntext\n"


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            "## First\n\nnew: \\1 \\g<0> \\d\n",
            "# Page\n\n## First\n\nnew: \\1 \\g<0> \\d\n\n## Second\n\ntext\n",
        ),
        ("## Second\n\nnew\n\n\n", PAGE.replace("text", "new")),
        ("## Sec\n\nnew\n", f"{PAGE}\n## Sec\n\nnew\n"),
    ],
)
def test_a_section_is_replaced_up_to_the_next_of_its_level(script, tmp_path, section, expected):
    """Lower headings belong to a section; a new section comes last; the page ends with one line."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    script("pages").write_section(page, section)
    assert page.read_text() == expected


def test_text_between_the_marks_of_a_script_is_replaced(script, tmp_path):
    """The marks and the text around them stay; the marks of other scripts do not count."""
    page = tmp_path / "page.md"
    marked = "before\n<!-- written by a.py --write -->{}<!-- end of a.py -->\nafter\n"
    page.write_text(marked.format("\nold\n"))
    script("pages").write_between_marks(page, "a.py", "\nnew \\1\n\n")
    assert page.read_text() == marked.format("\n\nnew \\1\n\n")
    with pytest.raises(ValueError, match="not enough values"):
        script("pages").write_between_marks(page, "b.py", "text")
