"""Tables in words: digits by column, notes collected, methods told once."""

import math
from dataclasses import replace

from rich_report import mean

from dialometer.model.estimate import SHUFFLES, Estimate, unknown
from dialometer.model.report import PERCENTAGE_POINTS, Column, Table
from dialometer.report.written import describe, mark_of, write_table


def written(*columns_and_cells, notes=()):
    columns = tuple(column for column, _ in columns_and_cells)
    rows = tuple(zip(*(cells for _, cells in columns_and_cells), strict=True))
    return write_table(Table("t", "T", columns, rows, notes=notes))


def column(kind, cells, **more):
    table = written((Column("x", "X", kind, **more), cells))
    return [row[0].text for row in table.rows]


def test_every_kind_of_cell():
    assert column("text", ["a", "", 3, True, None]) == ["a", "", "3", "yes", "not enough data"]
    assert column("count", [0, 1234567, 2.5, math.nan]) == ["0", "1,234,567", "2.5", "not enough data"]
    assert column("number", [3.14159, -2, math.inf], n_digits=3) == ["3.142", "−2.000", "∞"]
    assert column("percent", [0.5, 0.12345, 1]) == ["50.0%", "12.3%", "100.0%"]
    assert column("percent", [0.126], n_digits=0) == ["13%"]
    assert column("mark", [True, False, "partly", None]) == ["✓", "–", "partly", "not enough data"]
    assert column("p_value", [0.02, Estimate(3, 9, "t", p_value=0.0001), unknown("t", "why")]) == [
        ".020",
        "<\u00a0.001",
        "not enough data",
    ]
    assert column("estimate", [mean(0.5, 0.2), 0.25]) == ["0.50 [0.30, 0.70]", "0.25"]


def test_columns_of_like_intervals_line_up_and_others_keep_their_digits():
    assert column("estimate", [mean(1, 0.2), mean(1, 0.05)]) == ["1.00 [0.80, 1.20]", "1.00 [0.95, 1.05]"]
    assert column("estimate", [mean(1, 0.0002), mean(1000, 50)]) == ["1.00000 [0.99980, 1.00020]", "1,000 [950, 1,050]"]


def test_a_table_has_the_digits_of_its_typical_interval():
    """One narrow interval does not give a whole column decimals, nor does one without an interval."""
    assert column("estimate", [mean(80, 40), mean(57, 4.9), Estimate(50.35, 1, "mean")]) == [
        "80.0 [40.0, 120.0]",
        "57.0 [52.1, 61.9]",
        "50.4",
    ]
    first, second = Column("a", "A", "estimate"), Column("b", "B", "estimate")
    rows = written((first, [mean(80, 40)]), (second, [mean(57.16, 4.9)])).rows
    assert [cell.text for cell in rows[0]] == ["80.0 [40.0, 120.0]", "57.2 [52.3, 62.1]"]
    assert column("percent_estimate", [mean(0.3, 0.1), mean(0.02, 0.017)]) == ["30% [20, 40]", "2% [0, 4]"]
    assert column("estimate", [mean(2, 0.5), mean(1, 0)], n_digits=0) == ["2 [2, 3]", "1 [1, 1]"]  # ranks are whole


def test_columns_of_one_statistic_in_two_units_have_one_number_of_digits_each():
    table = written(
        (Column("x", "% of the scale", "estimate"), [mean(52.3, 5.4), mean(46.7, 4.9)]),
        (Column("y", "Points", "estimate"), [mean(3.2, 0.3), mean(2.9, 0.4)]),
    )
    assert [row[0].text for row in table.rows] == ["52.3 [46.9, 57.7]", "46.7 [41.8, 51.6]"]
    assert [row[1].text for row in table.rows] == ["3.20 [2.90, 3.50]", "2.90 [2.50, 3.30]"]


def test_ratios_keep_the_end_that_matters():
    """An odds ratio of 6 [1, 43] might include 1 or not."""
    ratio = Estimate(5.94, 9, "odds ratio", low=0.82, high=43.1, unit="odds ratio")
    assert column("estimate", [ratio]) == ["5.94 [0.82, 43]"]
    assert column("estimate", [replace(ratio, value=105, low=13, high=849)]) == ["110 [13, 850]"]
    large = replace(ratio, value=340, low=52, high=2246)
    assert column("estimate", [ratio, large, large]) == ["5.94 [0.82, 43]", "340 [52, 2,200]", "340 [52, 2,200]"]


def test_an_error_of_rounding_is_a_zero():
    share = Estimate(1.4e-17, 24, "difference of shares", low=-0.19, high=0.19)
    assert column("percent_estimate", [share]) == ["0% [−19, 19]"]


def test_the_same_number_is_written_the_same_however_it_was_computed():
    assert column("number", [0.625, 0.625 - 1e-15, -0.625]) == ["0.63", "0.63", "−0.63"]


def test_units_alignment_and_row_headings():
    table = written(
        (Column("a", "Who"), ["x"]), (Column("b", "Time", "number", 1, "s"), [1.0]), (Column("c", "OK", "mark"), [True])
    )
    assert [(h.label, h.align) for h in table.headings] == [("Who", "left"), ("Time (s)", "right"), ("OK", "center")]
    assert table.has_row_headings


def test_notes_get_marks_and_each_is_told_once():
    few = unknown("mean", "2 raters; at least 3 are needed")
    table = written(
        (Column("a", "A", "estimate"), [mean(1, 0.1), few, mean(2, 0.1).with_note("one rater was constant")]),
        (Column("b", "B", "estimate"), [few, few, mean(1, 0.1)]),
        notes=("A remark.",),
    )
    assert [[cell.marks for cell in row] for row in table.rows] == [[(), ("a",)], [("a",), ("a",)], [("b",), ()]]
    assert table.footnotes == (("a", "2 raters; at least 3 are needed"), ("b", "one rater was constant"))
    assert table.remarks[0] == "A remark."


def test_a_note_on_every_estimate_becomes_a_remark():
    cells = [mean(i, 0.1).with_note("log scale") for i in range(3)]
    table = written((Column("a", "A", "estimate"), cells))
    assert table.footnotes == ()
    assert "Log scale." in table.remarks
    assert all(not cell.marks for row in table.rows for cell in row)


def test_how_the_numbers_were_made():
    same = written(
        (Column("a", "A", "estimate"), [mean(1, 0.1, n=5), mean(1, 0.1, n=90)]),
        (Column("b", "B", "estimate"), [None, None]),
    )
    how = "Mean; 95% confidence interval: percentile bootstrap over raters, 2,000 resamples, seed 7; n = 5 to 90."
    assert same.remarks == (how,)
    wilson = Estimate(0.5, 12, "proportion", 0.2, 0.8, 0.9, "Wilson")
    two = written((Column("a", "A", "estimate"), [mean(1, 0.1)]), (Column("b", "B", "percent_estimate"), [wilson]))
    assert two.remarks[1] == "B: proportion; 90% confidence interval: Wilson; n = 12."
    many = written((Column("a", "A", "estimate"), [Estimate(1, 3, f"method {i}") for i in range(5)]))
    assert many.remarks == ("Several methods, named for each row in the data files.",)
    many = written(
        (
            Column("a", "A", "estimate"),
            [Estimate(1, 3, f"method {i}", 0, 2, interval_method="Wilson") for i in range(5)],
        )
    )
    assert many.remarks == (
        "Several methods, named for each row in the data files; 95% confidence interval: Wilson.",
    ), "which the data files do not name"
    kappa, share = Estimate(0.4, 3, "Fleiss' kappa"), Estimate(0.5, 3, "raters alone")
    named = write_table(
        Table(
            "t", "T", (Column("a", "Fleiss' kappa", "estimate"), Column("b", "Raters", "estimate")), ((kappa, share),)
        )
    )
    assert named.remarks == ("Fleiss' kappa; n = 3.", "Raters alone; n = 3.")


def test_a_method_is_written_once_where_only_tests_and_intervals_vary():
    wilson = Estimate(0.5, 12, "proportion, t-test; ties excluded", 0.2, 0.8, interval_method="Wilson")
    exact = Estimate(1.0, 12, "proportion; ties excluded", 0.7, 1.0, interval_method="Clopper-Pearson")
    cut = Estimate(0.9, 12, "proportion, t-test; ties excluded", 0.8, 1.0, interval_method="Wilson, cut at 1")
    bare = Estimate(0.9, 12, "proportion; ties excluded")
    table = written((Column("a", "A", "estimate"), [wilson, exact, cut, bare]))
    assert table.remarks == (
        "Proportion, t-test; ties excluded; 95% confidence interval: Wilson (some cut at 1), or Clopper-Pearson; n = 12.",
    )


def test_all_about_one_number():
    estimate = Estimate(0.5, 1200, "proportion", 0.2, 0.8, interval_method="Wilson", p_value=0.03)
    assert describe(estimate) == "proportion; n = 1,200; 95% confidence interval: Wilson; p\u00a0=\u00a0.030"
    shuffled = Estimate(0.1, 500, "kappa", 0.0, 0.2, interval_method=SHUFFLES, n_resamples=500)
    assert describe(shuffled) == "kappa; n = 500; in brackets the middle 95% of the shuffles, 500 resamples"


def test_marks_of_one_cell_are_in_their_order():
    cells = (Estimate(1.0, 3, "m", notes=("first",)), Estimate(2.0, 3, "m", notes=("second", "first")))
    rows = (cells, (Estimate(1.0, 3, "m"), None))
    table = write_table(Table("t", "T", (Column("a", "A", "estimate"), Column("b", "B", "estimate")), rows))
    assert [cell.marks for cell in table.rows[0]] == [("a",), ("a", "b")]


def test_marks_go_on_after_z():
    assert [mark_of(i) for i in (0, 25, 26, 27, 701, 702)] == ["a", "z", "aa", "ab", "zz", "aaa"]


def test_differences_of_shares_are_percentage_points():
    column = Column("difference", "Difference", "percent_estimate", unit=PERCENTAGE_POINTS)
    written = write_table(Table("t", "T", (column,), ((Estimate(0.12, 40, "difference", 0.02, 0.22),),)))
    assert written.headings[0].label == "Difference (percentage points)"
    assert written.rows[0][0].text == "12 [2, 22]"


def test_a_corrected_p_value_is_not_said_twice():
    """Of single tests it is the same number; the data files keep both columns."""
    columns = [Column("p", "p", "p_value"), Column("p_adjusted", "p (Holm)", "p_value")]

    def headings(*p_values):
        return [heading.label for heading in write_table(Table("t", "T", tuple(columns), p_values)).headings]

    assert headings((0.02, 0.02), (None, None)) == ["p"]
    assert headings((0.02, 0.04), (0.5, 0.5)) == ["p", "p (Holm)"]


def test_methods_with_one_kind_of_interval_name_it_once():
    first, second = mean(0.5, 0.2), mean(0.4, 0.2)
    (remark,) = written(
        (Column("x", "X", "estimate"), [replace(first, method="alpha"), replace(second, method="F1")])
    ).remarks
    assert remark.startswith("Alpha / F1; 95% confidence interval")
    assert remark.count("confidence interval") == 1
