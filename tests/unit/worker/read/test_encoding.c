/* Goal: text comes out as UTF-8, or is refused with file, line and remedy, wherever blocks are cut. Method:
 * texts in several encodings, cut at each byte; then each format with names. */
#include "worker/read/encoding.h"

#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decodes, or with encoding NULL checks, two blocks; the text is put to out. */
static enum dp_status pass(const char *encoding, const char *bytes, size_t len, size_t cut, char out[256],
                           struct dp_error *err)
{
    struct dp_encoding e = {0};
    size_t used = 0;
    enum dp_status st = encoding ? dp_encoding_open(&e, encoding, err) : DP_OK;
    for (int half = 0; st == DP_OK && half < 2; half++) {
        const unsigned char *at = (const unsigned char *)bytes + (half ? cut : 0);
        size_t n = half ? len - cut : cut;
        if (!encoding)
            st = dp_encoding_check(&e, "file", at, n, err);
        e.from = at;
        e.left = encoding ? n : 0;
        while (st == DP_OK && e.left > 0) {
            st = dp_encoding_take(&e, "file", err);
            assert_true(used + e.text_len < 256);
            memcpy(out + used, e.text, e.text_len);
            used += e.text_len;
        }
    }
    out[used] = '\0';
    if (st == DP_OK)
        st = dp_encoding_end(&e, "file", err);
    dp_encoding_close(&e);
    return st;
}

static void cut_anywhere(void **state)
{
    static const struct {
        const char *encoding, *bytes;
        size_t len;
        const char *text; /* NULL: refused */
        const char *words;
    } cases[] = {
        {"latin1", "Andr\xe9\n\xe1", 7, "André\ná", NULL},
        {"CP1252", "a\x80\n", 3, "a€\n", NULL},
        {"cp1252", "a\n\x81", 3, NULL, "file:2: byte 0x81 is no character of cp1252"},
        {"utf-16",
         "\xff\xfe"
         "a\0\n\0\xac\x20\x3d\xd8\x00\xde",
         12, "a\n€\xf0\x9f\x98\x80", NULL},
        {"utf-16",
         "\xfe\xff"
         "\0a\0\n",
         6, "a\n", NULL},
        {"utf-16",
         "\xff\xfe"
         "a\0\n\0b",
         7, NULL, "file:2: byte 0x62 is no character of utf-16"},
        {"gb18030", "\x84\x31\xa4\x37\xb0\xa1", 6,
         "\xef\xbf\xbd"
         "啊",
         NULL},
        {NULL, "a\n年齢\n\xf0\x9f\x98\x80", 13, "", NULL},
        {NULL, "a\nb\xe9\nc", 6, NULL,
         "file:2: byte 0xe9 is no UTF-8: name the text's encoding (--encoding latin1"},
        {NULL, "a\nb\xe9", 4, NULL, "file:2: byte 0xe9 is no UTF-8"},
        {NULL, "\n\n\xf0\x9f\x98x", 6, NULL, "file:3: byte 0xf0 is no UTF-8"},
        {NULL, "\xed\xa0\x80", 3, NULL, "file:1: byte 0xed is no UTF-8"},
        {NULL, "\xc0\xaf", 2, NULL, "file:1: byte 0xc0 is no UTF-8"},
        {NULL, "ab\n\x80", 4, NULL,
         "file:2: byte 0x80 is no UTF-8: name the text's encoding (--encoding windows-"},
        {"windows-1252", "\x93\x80\x94", 3, "“€”", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t cut = 0; cut <= cases[i].len; cut++) {
            struct dp_error err = {0};
            char out[256];
            enum dp_status st = pass(cases[i].encoding, cases[i].bytes, cases[i].len, cut, out, &err);
            if (st != (cases[i].text ? DP_OK : DP_DATA))
                fail_msg("case %zu, cut at %zu: status %d, '%s'", i, cut, (int)st, err.text);
            if (cases[i].text)
                assert_string_equal(out, cases[i].text);
            else if (!strstr(err.text, cases[i].words))
                fail_msg("case %zu, cut at %zu: '%s'", i, cut, err.text);
        }
}

static void unknown_names(void **state)
{
    static const char *const names[] = {"latn1", "latin1//IGNORE", "none"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct dp_encoding e = {0};
        struct dp_error err = {0};
        assert_int_equal(dp_encoding_open(&e, names[i], &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, names[i]));
    }
}

static struct dp_dataset_options csv_options(void)
{
    return (struct dp_dataset_options){
        .form = DP_FORM_SPARSE, .labels = DP_LABELS_BINARY, .scale = 1, .label = "y", .batch = 4};
}

static struct dp_dataset_options pairs_options(void)
{
    return (struct dp_dataset_options){.form = DP_FORM_PAIRS, .scale = 1, .negatives = 1, .batch = 4};
}

static struct dp_dataset_options words_options(void)
{
    return (struct dp_dataset_options){
        .form = DP_FORM_WORDS, .window = 2, .scale = 1, .negatives = 1, .batch = 4};
}

/* Of each format with names: Latin-1 is refused, or read as the same text in UTF-8; so is UTF-16. */
static void formats_with_names(void **state)
{
    static const struct {
        struct dp_dataset_options (*options)(void);
        const char *latin1, *utf8;
        unsigned line;
    } cases[] = {
        {csv_options, "y,caf\xe9\n1,x\n0,\xe1\n", "y,café\n1,x\n0,á\n", 1},
        {csv_options, "y,a\n1,x\n0,\xe1\n", "y,a\n1,x\n0,á\n", 3},
        {pairs_options, "a\t1\nb\t2\nb\xe9\t1\n", "a\t1\nb\t2\nbé\t1\n", 3},
        {words_options, "le caf\xe9\nnoir et le th\xe9 \n", "le café\nnoir et le thé \n", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_dataset_options options = cases[i].options();
        char wide[256] = "\xff\xfe";
        size_t len = 2;
        formats_refused(options, cases[i].latin1, cases[i].line, DP_DATA,
                        "is no UTF-8: name the text's encoding");
        options.path = write_text("utf8", cases[i].utf8);
        const struct dp_dataset *same = formats_open(&options);
        options.encoding = "Latin1";
        options.path = write_text("latin1", cases[i].latin1);
        formats_same(formats_open(&options), same, 0);
        for (const char *at = cases[i].latin1; *at; at++) {
            wide[len++] = *at;
            wide[len++] = '\0';
        }
        options.path = write_file("utf16", wide, len);
        options.encoding = "utf-16";
        formats_same(formats_open(&options), same, 0);
        struct dp_dataset *none;
        struct dp_error err = {0};
        options.encoding = NULL;
        assert_int_equal(dp_dataset_open(&options, &none, &err), DP_DATA);
        assert_non_null(strstr(err.text, "utf16: is UTF-16: name that (--encoding utf-16"));
        options.encoding = "latn1";
        assert_int_equal(dp_dataset_open(&options, &none, &err), DP_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FILES_TEST(cut_anywhere), FILES_TEST(unknown_names),
                                       FILES_TEST(formats_with_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
