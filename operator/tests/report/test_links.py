"""The matrix of a point in a report."""

from plimsoll.api.names import Verdict
from plimsoll.report.layers_links import links_of, links_section
from plimsoll.report.page import make_page
from plimsoll.report.render import render
from support.goldens import run_of, tables_of, texts, words_of
from support.results import full_mesh, matrix, matrix_point

HEALTHY = full_mesh(range(3), range(3))
SLOW = HEALTHY | {(2, 0): 94.0}
SERVED = full_mesh(range(2), range(2, 5), 9_400)


def test_the_numbers_are_in_a_table_slowest_first() -> None:
    section = links_section([run_of([matrix_point(matrix(SLOW, retransmits=7))])])
    (table,) = tables_of(section)
    assert "Mbit/s" in table.headings
    rows = texts(table)
    assert rows[0] == ["client 2 (n2)", "client 0 (n0)", "94*", "94", "7", "outlier"]
    assert len(rows) == 6
    assert rows[1][-1] == ""


def test_a_sentence_counts_the_outliers_of_a_point() -> None:
    assert "0 outliers among 6 pairs" in words_of(links_section([run_of([matrix_point(matrix(SERVED))])]))
    assert "1 outlier among 6 pairs" in words_of(links_section([run_of([matrix_point(matrix(SLOW))])]))


def test_the_fastest_of_many_pairs_are_left_out_of_the_table() -> None:
    section = links_section([run_of([matrix_point(matrix(full_mesh(range(40), range(40, 60))))])])
    (table,) = tables_of(section)
    assert (len(table.rows), "the 288 fastest are left out" in table.caption) == (512, True)


def test_a_tool_that_counts_operations_shows_them() -> None:
    links = links_of(matrix_point(matrix(SERVED, by_bytes=False)))
    assert links is not None
    assert (links.unit, links.value(links.pairs[0])) == ("operations/s", 9_400)


def test_points_without_a_matrix_and_invalid_ones_have_no_table() -> None:
    assert links_section([run_of([matrix_point(None)])]) is None
    assert links_section([run_of([matrix_point(matrix(SLOW), verdict=Verdict.INVALID)])]) is None


def test_the_page_has_the_section_and_names_cannot_break_it() -> None:
    result = matrix_point(matrix(SLOW))
    assert result.status.summary is not None
    assert result.status.summary.matrix is not None
    members = tuple(
        one.model_copy(update={"node": f"<b>{one.node}</b></script>"}) for one in result.status.summary.matrix.members
    )
    odd = result.status.summary.matrix.model_copy(update={"members": members})
    summary = result.status.summary.model_copy(update={"matrix": odd})
    html = render(
        make_page(
            [run_of([result.model_copy(update={"status": result.status.model_copy(update={"summary": summary})})])]
        )
    )
    assert 'id="links"' in html
    assert "<b>n0" not in html
