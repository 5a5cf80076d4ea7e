/* Goal    nothing that a user, a report or gnuplot names can be markup of the page, or lead out of it.
 * Method  texts that are markup, bytes that are no text, drawings with what must not pass. */
#include "tests/lib/test.h"

#include "deploy/pages/figure.h"
#include "deploy/pages/markup.h"
#include "deploy/pages/page.h"
#include "deploy/pages/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *escaped(const char *text)
{
    char *out = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&out, &size);
    dp_markup_escape(to, text);
    assert_int_equal(fclose(to), 0);
    return out;
}

static void text_is_no_markup(void **state)
{
    (void)state;
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
    (void)state;
    static const char bad[] = "<i>'\"&";
    static const char *const headings[] = {bad};
    static const struct dp_plot_series series[] = {{.name = bad}, {.name = bad}};
    const struct dp_plot plot = {.caption = bad, .series = series, .count = 2, .level_name = bad};
    char *out = NULL;
    size_t size = 0;
    unsigned found = 0;
    FILE *to = open_memstream(&out, &size);
    dp_page_begin(to, bad); /* title and heading */
    dp_page_section(to, bad);
    dp_page_paragraph(to, "note", bad);
    dp_page_command(to, bad);
    dp_page_table_begin(to, headings, 1, 1);
    dp_page_row(to);
    dp_page_text_cell(to, bad);
    dp_page_long_cell(to, bad);
    dp_page_row_end(to);
    dp_page_table_end(to);
    dp_page_fold_begin(to, bad, true);
    dp_page_fold_end(to);
    dp_figure_put(to, &plot, "<svg></svg>", bad);
    dp_figure_put_file(to, &plot, "<svg></svg>"); /* title and legend */
    dp_markup_link(to, bad, bad);
    dp_page_end(to, bad);
    assert_int_equal(fclose(to), 0);
    assert_null(strstr(out, bad));
    for (const char *at = out; (at = strstr(at, "&lt;i&gt;&#39;&quot;&amp;")); at++)
        found++;
    assert_int_equal(found, 21);
    free(out);
}

static void numbers_are_bounded(void **state)
{
    (void)state;
    char text[DP_PAGE_NUMBER_BYTES];
    assert_string_equal(dp_page_number(1234567.4, -1, text), "1,234,567");
    assert_string_equal(dp_page_number(0.12345, 4, text), "0.1235");
    assert_string_equal(dp_page_number((double)NAN, 2, text), "-");
    assert_string_equal(dp_page_number(-HUGE_VAL, -1, text), "-");
    assert_string_equal(dp_page_number(1e300, -1, text), "1e+300");
    assert_string_equal(dp_page_number(-1e300, 5, text), "-1e+300");
}

static char *taken_as(const char *svg, bool hatched)
{
    char *out = NULL;
    struct dp_error err = {0};
    enum dp_status st = dp_svg_take(svg, strlen(svg), "a \"plot\"", hatched, &out, &err);
    assert_true((st == DP_OK) == (out != NULL));
    return out;
}

static char *taken(const char *svg)
{
    return taken_as(svg, false);
}

/* What a drawing of gnuplot's has, and what another program's might. */
static void only_what_draws_is_taken(void **state)
{
    (void)state;
    char *out = taken(
        "<?xml version=\"1.0\"?>\n<svg width=\"520\" viewBox=\"0 0 520 300\" "
        "xmlns=\"http://www.w3.org/2000/svg\">\n"
        "<title>Gnuplot</title>\n<defs><circle id='gpDot' r='1'/></defs>\n"
        "<script>alert(1)</script><image href=\"http://a/b.png\"/><style>@import url(x)</style>\n"
        "<g id=\"p1\" color=\"black\" stroke=\"currentColor\" onclick=\"x()\" "
        "style=\"fill:url(http://a)\"><title>t</title>\n"
        "<g fill=\"none\">\n</g>\n"
        "<path stroke='rgb(  0, 114, 178)' fill=\"url(#x)\" d='M1,2 L3,4 '/>\n"
        "<text fill=\"rgb(1,1,1)\">a &lt; b</text>\n"
        "<use xlink:href='#gpPt6' transform='translate(64.34,262.30) scale(2.62)' color='rgb(213, 94, 0)'/>\n"
        "</g>\n</svg>\n");
    assert_non_null(out);
    assert_string_equal(
        out, "<svg viewBox=\"0 0 520 300\" role=\"img\" aria-label=\"a &quot;plot&quot;\">\n"
             "<g stroke=\"currentColor\"><path stroke=\"#0072b2\" fill=\"currentColor\" d=\"M1,2 L3,4 \"/>\n"
             "<text fill=\"currentColor\">a &lt; b</text>\n"
             "<path transform=\"translate(64.34,262.30)\" d=\"M-3.2,0 a3.2,3.2 0 1,0 6.4,0 a3.2,3.2 0 1,0 "
             "-6.4,0 z\" "
             "fill=\"#d55e00\" stroke=\"none\"/>\n"
             "</g>\n</svg>\n");
    free(out);
}

/* gnuplot breaks the lines of a band's points. */
static void points_stay_apart(void **state)
{
    (void)state;
    char *out = taken("<svg viewBox='0 0 1 1'><polygon fill='rgb(9,9,9)' points='1,2\n3,4'/></svg>");
    assert_non_null(out);
    assert_non_null(strstr(out, "points=\"1,2 3,4\""));
    free(out);
}

/* Each by gnuplot's number of it; what gnuplot draws in white, or without a size, is not seen in its drawing either. */
static void marks_differ(void **state)
{
    (void)state;
    static const char *const numbers[DP_MARKS] = {"6", "4", "8", "12", "10", "5", "3", "1"};
    char *out[DP_MARKS], svg[256];
    for (int m = 0; m < DP_MARKS; m++) {
        (void)snprintf(svg, sizeof svg,
                       "<svg viewBox='0 0 1 1'><use xlink:href='#gpPt%s' transform='translate(1,2) scale(4)' "
                       "color='rgb(1,1,1)'/></svg>",
                       numbers[m]);
        out[m] = taken(svg);
        assert_non_null(out[m]);
        assert_non_null(strstr(out[m], "translate(1.00,2.00)"));
        for (int other = 0; other < m; other++)
            assert_string_not_equal(out[m], out[other]);
    }
    for (int m = 0; m < DP_MARKS; m++)
        free(out[m]);
    char *none = taken(
        "<svg viewBox='0 0 1 1'><use xlink:href='#gpPt6' transform='translate(1,2) scale(4)' color='white'/>"
        "<use xlink:href='#gpPt6' transform='translate(1,2) scale(0.00)' color='rgb(9,9,9)'/></svg>");
    assert_non_null(none);
    assert_null(strstr(none, "translate"));
    free(none);
}

static void areas_are_hatched(void **state)
{
    (void)state;
    static const char svg[] = "<svg viewBox='0 0 1 1'><polygon fill='rgb(213, 94, 0)' points='1,2 3,4'/>"
                              "<polygon fill='rgb(213, 94, 0)' fill-opacity='0.2' points='5,6 7,8'/></svg>";
    char *plain = taken(svg), *hatched = taken_as(svg, true);
    assert_null(strstr(plain, "url("));
    assert_non_null(strstr(
        hatched, "<polygon fill=\"#d55e00\" points=\"1,2 3,4\"/>\n<polygon fill=\"url(#h1)\" points=\"1,2 "
                 "3,4\"/>"));
    assert_null(strstr(strstr(hatched, "url(") + 1, "url("));
    free(plain);
    free(hatched);
}

/* Papers have no style of ours. */
static void a_file_stands_alone(void **state)
{
    (void)state;
    char *out = NULL, name[DP_FIGURE_NAME_BYTES];
    size_t size = 0;
    static const double x[] = {1}, y[] = {2};
    static const struct dp_plot_series series[] = {
        {.name = "a", .colour = DP_COLOUR_INK, .points = 1, .x = x, .y = y},
        {.name = "b", .colour = DP_COLOUR_PURPLE, .points = 1, .x = x, .y = y}};
    const struct dp_plot plot = {.caption = "Workers' 1 − x (log)", .series = series, .count = 2};
    FILE *to = open_memstream(&out, &size);
    dp_figure_put_file(
        to, &plot,
        "<svg viewBox=\"0 0 520 300\"><path stroke=\"var(--grid)\" fill=\"currentColor\"/></svg>\n");
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" "));
    assert_non_null(strstr(out, "<path stroke=\"#dcdfe3\" fill=\"#1c1e21\"/>"));
    assert_null(strstr(out, "var("));
    assert_null(strstr(out, "currentColor"));
    free(out);
    assert_string_equal(dp_figure_file(plot.caption, name), "workers-1-x-log.svg");
}

static void no_svg_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"",
                                        "no such terminal",
                                        "<svg viewBox='0 0 1 1'>",
                                        "<svg><g></svg>",
                                        "<svg></g></svg>",
                                        "<svg><path d='M1",
                                        "<svg></svg><svg></svg>",
                                        "<g></g>",
                                        "<svg><title>x</svg>"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_null(taken(cases[i]));
    char deep[4096] = "<svg>";
    for (size_t i = 0; i < 500; i++)
        strcat(deep, "<g x='1'");
    assert_null(taken(deep));
    deep[5] = '\0';
    for (size_t i = 0; i < 500; i++)
        strcat(deep, "<g>");
    assert_null(taken(deep));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_no_markup),   cmocka_unit_test(no_verb_forgets_it),
        cmocka_unit_test(numbers_are_bounded), cmocka_unit_test(only_what_draws_is_taken),
        cmocka_unit_test(points_stay_apart),   cmocka_unit_test(marks_differ),
        cmocka_unit_test(areas_are_hatched),   cmocka_unit_test(a_file_stands_alone),
        cmocka_unit_test(no_svg_is_refused)};
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
