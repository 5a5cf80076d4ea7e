/* Goal: what was packed comes out, or a status that names the file. Method: every packing, sizes round the
 * buffers', several members; then every truncation and every flipped byte of small files. */
#include "worker/read/unpack.h"

#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is shorter, or has other bytes there, is taken for plain. */
static const size_t magic_len[PACKINGS] = {0, 2, 4, 6, 14, 4};

/* Reads all of a file: *out for free(). */
static enum dp_status unpack_all(const char *path, char **out, size_t *out_len, struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    const unsigned char *bytes;
    size_t len = 1;
    *out = NULL;
    *out_len = 0;
    enum dp_status st = dp_unpack_open(path, &unpack, err);
    while (st == DP_OK && len > 0) {
        st = dp_unpack_next(unpack, &bytes, &len, err);
        if (st == DP_OK && len > 0) {
            *out = realloc(*out, *out_len + len);
            assert_non_null(*out);
            memcpy(*out + *out_len, bytes, len);
            *out_len += len;
        }
    }
    dp_unpack_close(&unpack);
    assert_null(unpack);
    return st;
}

static void check_same(const char *path, const void *bytes, size_t len)
{
    struct dp_error err = {0};
    char *got;
    size_t got_len;
    if (unpack_all(path, &got, &got_len, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(got_len, len);
    if (len > 0)
        assert_memory_equal(got, bytes, len);
    free(got);
}

/* Text that packs, but not to nothing. */
static char *make_text(size_t len)
{
    char *text = malloc(len + 1);
    assert_non_null(text);
    for (size_t i = 0; i < len; i++)
        text[i] = "0123456789: \n+-."[dp_mix(i / 3) & 15];
    return text;
}

/* UTF-8's mark at the start is left out, and nothing else is: alone, with text, in a member of its own, further down. */
static void the_mark_is_left_out(void **state)
{
    static const char mark[] = "\xef\xbb\xbf";
    for (int p = 0; p < PACKINGS; p++) {
        check_same(write_packed("file", (enum packing)p, mark, 3), "", 0);
        check_same(write_packed("file", (enum packing)p,
                                "\xef\xbb\xbf"
                                "1",
                                4),
                   "1", 1);
        check_same(write_packed("file", (enum packing)p, "\xef\xbb", 2), "\xef\xbb", 2);
        check_same(write_packed("file", (enum packing)p, "\xef\xbb\xbf\xef\xbb\xbf", 6), mark, 3);
        check_same(write_packed("file", (enum packing)p, "1\xef\xbb\xbf", 4), "1\xef\xbb\xbf", 4);
    }
    /* At the start of a later block it is data. */
    char *text = make_text(262144 + 3);
    memcpy(text + 262144, mark, 3);
    for (int p = 0; p < PACKINGS; p++)
        check_same(write_packed("file", (enum packing)p, text, 262144 + 3), text, 262144 + 3);
    free(text);
    for (int p = PACK_GZIP; p < PACK_ZIP; p++) {
        size_t a_len, b_len;
        char *a = pack((enum packing)p, mark, 3, &a_len), *b = pack((enum packing)p, "1 2\n", 4, &b_len);
        char *both = malloc(a_len + b_len);
        assert_non_null(both);
        memcpy(both, a, a_len);
        memcpy(both + a_len, b, b_len);
        check_same(write_file("file", both, a_len + b_len), "1 2\n", 4);
        free(a);
        free(b);
        free(both);
    }
}

static void round_trips(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 262143, 262144, 262145, 524288, 1300000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int p = 0; p < PACKINGS; p++) {
            char *text = make_text(sizes[i]);
            check_same(write_packed("file", (enum packing)p, text, sizes[i]), text, sizes[i]);
            free(text);
        }
}

/* 8 MB of one byte pack to very little: much output for one input buffer. */
static void small_file_large_content(void **state)
{
    size_t len = 8000000;
    char *bytes = malloc(len);
    assert_non_null(bytes);
    memset(bytes, '7', len);
    for (int p = 1; p < PACKINGS; p++)
        check_same(write_packed("file", (enum packing)p, bytes, len), bytes, len);
    free(bytes);
}

static void several_members(void **state)
{
    char *text = make_text(1000);
    for (int p = 1; p < PACK_ZIP; p++) {
        char *file = NULL;
        size_t len = 0, cuts[] = {0, 300, 300, 999, 1000};
        for (size_t i = 0; i + 1 < sizeof cuts / sizeof cuts[0]; i++) {
            size_t packed_len;
            char *packed = pack((enum packing)p, text + cuts[i], cuts[i + 1] - cuts[i], &packed_len);
            file = realloc(file, len + packed_len);
            assert_non_null(file);
            memcpy(file + len, packed, packed_len);
            len += packed_len;
            free(packed);
        }
        check_same(write_file("file", file, len), text, 1000);
        free(file);
    }
    free(text);
}

/* A zstd file may start with a frame to be skipped. */
static void skippable_frame(void **state)
{
    static const char skip[] = "\x50\x2a\x4d\x18\x03\x00\x00\x00xyz";
    size_t len;
    char *packed = pack(PACK_ZSTD, "hello", 5, &len), file[256];
    memcpy(file, skip, 11);
    memcpy(file + 11, packed, len);
    check_same(write_file("file", file, 11 + len), "hello", 5);
    free(packed);
}

static void peek_is_next(void **state)
{
    struct dp_unpack *unpack;
    struct dp_error err = {0};
    const unsigned char *a, *b;
    size_t a_len, b_len;
    assert_int_equal(dp_unpack_open(write_packed("file", PACK_GZIP, "abc", 3), &unpack, &err), DP_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dp_unpack_peek(unpack, &a, &a_len, &err), DP_OK);
        assert_int_equal(a_len, 3);
    }
    assert_int_equal(dp_unpack_next(unpack, &b, &b_len, &err), DP_OK);
    assert_ptr_equal(a, b);
    assert_int_equal(dp_unpack_next(unpack, &b, &b_len, &err), DP_OK);
    assert_int_equal(b_len, 0);
    dp_unpack_close(&unpack);
    dp_unpack_close(&unpack);
}

static void every_truncation(void **state)
{
    char *text = make_text(3000), *got;
    size_t len, got_len;
    for (int p = 1; p < PACKINGS; p++) {
        char *packed = pack((enum packing)p, text, 3000, &len);
        for (size_t cut = 0; cut < len; cut++) {
            struct dp_error err = {0};
            const char *path = write_file("file", packed, cut);
            enum dp_status st = unpack_all(path, &got, &got_len, &err);
            free(got);
            /* Shorter than its magic number a file is plain bytes; the parser refuses these. */
            if (cut < magic_len[p]) {
                assert_int_equal(st, DP_OK);
                assert_int_equal(got_len, cut);
            } else if (p == PACK_ZIP && st == DP_OK) { /* only its directory is cut, after the file */
                assert_int_equal(got_len, 3000);
            } else if (st != DP_DATA || !strstr(err.text, path) || !strstr(err.text, "truncated")) {
                fail_msg("packing %d cut at %zu of %zu: status %d, '%s'", p, cut, len, (int)st, err.text);
            }
        }
        free(packed);
    }
    free(text);
}

static void every_flipped_byte(void **state)
{
    char *text = make_text(300), *got;
    size_t len, got_len;
    for (int p = 1; p < PACKINGS; p++) {
        char *packed = pack((enum packing)p, text, 300, &len);
        for (size_t at = 0; at < len; at++) {
            struct dp_error err = {0};
            packed[at] ^= 0x10;
            const char *path = write_file("file", packed, len);
            enum dp_status st = unpack_all(path, &got, &got_len, &err);
            packed[at] ^= 0x10;
            /* Accepted: a broken magic number (plain bytes then), and what changes nothing of the content
             * (gzip's time and system, a bit that zstd leaves unused). */
            bool same = got_len == 300 && memcmp(got, text, 300) == 0;
            if (st == DP_OK ? !same && at >= magic_len[p] : st != DP_DATA || !strstr(err.text, path))
                fail_msg("packing %d byte %zu: status %d, '%s'", p, at, (int)st, err.text);
            free(got);
        }
        free(packed);
    }
    free(text);
}

static void trailing_rubbish(void **state)
{
    char *got;
    size_t len, got_len;
    for (int p = 1; p < PACK_ZIP; p++) { /* after a zip's file comes its directory */
        struct dp_error err = {0};
        char *packed = pack((enum packing)p, "hello", 5, &len);
        packed = realloc(packed, len + 20);
        assert_non_null(packed);
        memset(packed + len, 'x', 20);
        assert_int_equal(unpack_all(write_file("file", packed, len + 20), &got, &got_len, &err), DP_DATA);
        if (p == PACK_GZIP || p == PACK_BZIP2)
            assert_non_null(strstr(err.text, "20 bytes after the end of the "));
        free(got);
        free(packed);
    }
}

/* Files of tapes, one after the other, each padded. */
static void zeros_between_members(void **state)
{
    static const size_t zeros[] = {1, 4095, 4096, 300000};
    char *text = make_text(1000);
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        size_t a, b;
        char *first = pack(PACK_GZIP, text, 400, &a), *second = pack(PACK_GZIP, text + 400, 600, &b);
        char *both = calloc(1, a + zeros[i] + b);
        assert_non_null(both);
        memcpy(both, first, a);
        memcpy(both + a + zeros[i], second, b);
        check_same(write_file("file", both, a + zeros[i] + b), text, 1000);
        free(first);
        free(second);
        free(both);
    }
    free(text);
}

/* Zeros that pad a file are not data, as for gzip(1) and bzip2(1); one other byte after them is. */
static void zeros_are_padding(void **state)
{
    static const size_t zeros[] = {1, 2, 512, 300000};
    static const enum packing packings[] = {PACK_GZIP, PACK_BZIP2};
    char *text = make_text(1000), *got;
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
            struct dp_error err = {0};
            size_t len, got_len;
            char *packed = pack(packings[p], text, 1000, &len);
            packed = realloc(packed, len + zeros[i] + 1);
            assert_non_null(packed);
            memset(packed + len, 0, zeros[i]);
            packed[len + zeros[i]] = '\x1f';
            check_same(write_file("file", packed, len + zeros[i]), text, 1000);
            assert_int_equal(unpack_all(write_file("file", packed, len + zeros[i] + 1), &got, &got_len, &err),
                             DP_DATA);
            assert_non_null(strstr(err.text, "bytes after the end of the "));
            free(got);
            free(packed);
        }
    free(text);
}

static void expect_io(const char *path)
{
    struct dp_error err = {0};
    struct dp_unpack *unpack = (void *)&err;
    assert_int_equal(dp_unpack_open(path, &unpack, &err), DP_IO);
    assert_null(unpack);
    assert_non_null(strstr(err.text, path));
}

static void no_file(void **state)
{
    char path[256];
    expect_io("/nonexistent/file");
    expect_io(files_dir);
    (void)snprintf(path, sizeof path, "%s/pipe", files_dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_io(path); /* and does not wait for a writer */
    if (geteuid() != 0) {
        const char *locked = write_text("locked", "1 1:1\n");
        assert_int_equal(chmod(locked, 0), 0);
        expect_io(locked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(round_trips),
        FILES_TEST(the_mark_is_left_out),
        FILES_TEST(small_file_large_content),
        FILES_TEST(several_members),
        FILES_TEST(skippable_frame),
        FILES_TEST(peek_is_next),
        FILES_TEST(every_truncation),
        FILES_TEST(every_flipped_byte),
        FILES_TEST(trailing_rubbish),
        FILES_TEST(zeros_are_padding),
        FILES_TEST(zeros_between_members),
        FILES_TEST(no_file),
    };
    return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
