/* Goal    nothing that a user, a report or gnuplot names can be markup of the page, or lead out of it.
 * Method  texts that are markup, bytes that are no text, drawings with what must not pass. */
#include "tests/lib/test.h"

#include "deploy/compare/page.h"
#include "deploy/compare/svg.h"

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
    const struct dp_plot plot = {.caption = bad, .series = series, .count = 2};
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
    dp_page_figure(to, &plot, "<svg></svg>");
    dp_page_end(to, bad);
    assert_int_equal(fclose(to), 0);
    assert_null(strstr(out, bad));
    for (const char *at = out; (at = strstr(at, "&lt;i&gt;&#39;&quot;&amp;")); at++)
        found++;
    assert_int_equal(found, 13);
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

static char *taken(const char *svg)
{
    char *out = NULL;
    struct dp_error err = {0};
    enum dp_status st = dp_svg_take(svg, strlen(svg), "a \"plot\"", &out, &err);
    assert_true((st == DP_OK) == (out != NULL));
    return out;
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
             "<circle cx=\"64.34\" cy=\"262.30\" r=\"2.6\" stroke=\"none\" fill=\"#d55e00\"/>\n"
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
        cmocka_unit_test(points_stay_apart),   cmocka_unit_test(no_svg_is_refused)};
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
