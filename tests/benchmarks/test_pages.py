"""Sections and marked texts of pages are replaced; everything around them stays."""

import pytest

PAGE = "# Page\n\n## First\n\nold\n\n### Part\n\nold\n\n## Second\n\ntext\n"


@pytest.fixture(scope="module")
def pages(script):
    """The module `benchmarks/pages.py`."""
    return script("pages")


@pytest.fixture
def page(tmp_path):
    """A page of two sections."""
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_a_section_is_replaced_up_to_the_next_of_its_level(pages, page):
    """The lower headings of a section belong to it; a backslash is written as it is."""
    pages.write_section(page, "## First\n\nnew: \\1 \\g<0> \\d\n")
    assert page.read_text() == "# Page\n\n## First\n\nnew: \\1 \\g<0> \\d\n\n## Second\n\ntext\n"


def test_the_last_section_ends_with_the_page(pages, page):
    """The page ends with one line feed, whatever the section ends with."""
    pages.write_section(page, "## Second\n\nnew\n\n\n")
    assert page.read_text() == PAGE.replace("text", "new")


def test_a_section_that_the_page_lacks_is_added(pages, page):
    """A new section is written at the end; a heading that begins alike is another one."""
    pages.write_section(page, "## Sec\n\nnew\n")
    assert page.read_text() == f"{PAGE}\n## Sec\n\nnew\n"


def test_text_between_the_marks_of_a_script_is_replaced(pages, page):
    """The marks and the text around them stay; the marks of other scripts do not count."""
    marked = "before\n<!-- written by a.py --write -->{}<!-- end of a.py -->\nafter\n"
    page.write_text(marked.format("\nold\n"))
    pages.write_between_marks(page, "a.py", "\nnew \\1\n\n")
    assert page.read_text() == marked.format("\n\nnew \\1\n\n")
    with pytest.raises(ValueError, match="not enough values"):
        pages.write_between_marks(page, "b.py", "text")
