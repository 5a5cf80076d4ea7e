/* Goal    nothing that a user or a report names can be markup of the page, or lead out of it.
 * Method  texts that are markup, bytes that are no text. */
#include "tests/lib/test.h"

#include "deploy/pages/figure.h"
#include "deploy/pages/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *escaped(const char *text)
{
    char *out = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&out, &size);
    dp_page_escape(to, text);
    assert_int_equal(fclose(to), 0);
    return out;
}

static void text_is_no_markup(void **state)
{
    static const char *const cases[][2] = {
        {"a<b>&\"c\" 'd'", "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39;"},
        {"</style><script>x()</script>", "&lt;/style&gt;&lt;script&gt;x()&lt;/script&gt;"},
        {"&lt;", "&amp;lt;"},
        {"Zürich 東京", "Zürich 東京"},
        {"a\nb\x1b[2J\x7f", "a?b?[2J?"},
        {"\xff\xfe", "??"},
        {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *out = escaped(cases[i][0]);
        assert_string_equal(out, cases[i][1]);
        free(out);
    }
}

/* Each verb that is given a text. */
static void no_verb_forgets_it(void **state)
{
    static const char bad[] = "<i>'\"&";
    static const struct dp_plot_series series[] = {{.name = bad}, {.name = bad}};
    const struct dp_plot plot = {
        .caption = bad, .x_label = bad, .y_label = bad, .series = series, .count = 2, .level_name = bad};
    char *out = NULL;
    size_t size = 0;
    unsigned found = 0;
    FILE *to = open_memstream(&out, &size);
    dp_page_begin(to, bad); /* title and heading */
    dp_page_section(to, bad);
    dp_page_paragraph(to, "note", bad);
    dp_page_command(to, bad);
    dp_page_table_begin(to, 1, bad, NULL);
    dp_page_row(to);
    dp_page_text_cell(to, bad);
    dp_page_long_cell(to, bad);
    dp_page_row_end(to);
    dp_page_table_end(to);
    dp_page_fold_begin(to, bad, true);
    dp_page_fold_end(to);
    dp_figure_put(to, &plot, bad);
    dp_figure_put_file(to, &plot); /* title and legend */
    dp_page_link(to, bad, bad);
    dp_page_end(to, bad);
    assert_int_equal(fclose(to), 0);
    assert_null(strstr(out, bad));
    for (const char *at = out; (at = strstr(at, "&lt;i&gt;&#39;&quot;&amp;")); at++)
        found++;
    assert_int_equal(found, 26);
    free(out);
}

static void numbers_are_bounded(void **state)
{
    char text[DP_PAGE_NUMBER_BYTES];
    assert_string_equal(dp_page_number(1234567.4, -1, text), "1,234,567");
    assert_string_equal(dp_page_number(0.12345, 4, text), "0.1235");
    assert_string_equal(dp_page_number((double)NAN, 2, text), "-");
    assert_string_equal(dp_page_number(-HUGE_VAL, -1, text), "-");
    assert_string_equal(dp_page_number(1e300, -1, text), "1e+300");
    assert_string_equal(dp_page_number(-1e300, 5, text), "-1e+300");
}

/* Papers have no style of ours. */
static void a_file_stands_alone(void **state)
{
    char *out = NULL, name[DP_FIGURE_NAME_BYTES];
    size_t size = 0;
    static const double x[] = {1}, y[] = {2};
    static const struct dp_plot_series series[] = {
        {.name = "a", .colour = DP_COLOUR_INK, .points = 1, .x = x, .y = y},
        {.name = "b", .colour = DP_COLOUR_PURPLE, .points = 1, .x = x, .y = y}};
    const struct dp_plot plot = {
        .caption = "Workers' 1 − x (log)", .x_label = "x", .series = series, .count = 2};
    FILE *to = open_memstream(&out, &size);
    dp_figure_put_file(to, &plot);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" "));
    assert_non_null(strstr(out, "stroke=\"#dcdfe3\""));
    assert_non_null(strstr(out, "fill=\"#1c1e21\""));
    assert_null(strstr(out, "var("));
    assert_null(strstr(out, "currentColor"));
    free(out);
    assert_string_equal(dp_figure_file(plot.caption, name), "workers-1-x-log.svg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_no_markup), cmocka_unit_test(no_verb_forgets_it),
        cmocka_unit_test(numbers_are_bounded), cmocka_unit_test(a_file_stands_alone)};
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
