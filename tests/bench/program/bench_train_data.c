#include "tests/bench/program/bench_train_data.h"

#include "deploy/cli/draw.h"
#include "deploy/cli/generate_clicks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED           UINT64_C(20240305)
#define ZIPF           1.05
#define FEATURES       50000u
#define FEATURES_DRAWN 48u /* of a row; some come twice */
#define SIDE           28u
#define PIXELS         (SIDE * SIDE)
#define CLASSES        10u
#define PAIRS_OF_USER  30u
#define ITEMS          40000u
#define CLICK_FEATURES 100000u
#define WORDS          20000u
#define WORDS_OF_LINE  20u

const char *dp_bench_train_data_format(enum dp_bench_train_data data)
{
    static const char *const formats[] = {"libsvm", "idx", "pairs", "criteo", "text"};
    return formats[data];
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void write_sparse(FILE *file, uint64_t rows)
{
    struct dp_draw draw = {SEED};
    struct dp_zipf zipf;
    uint64_t feature[FEATURES_DRAWN];
    dp_zipf_init(&zipf, FEATURES, ZIPF);
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t odd = 0;
        for (uint32_t i = 0; i < FEATURES_DRAWN; i++)
            odd += (feature[i] = dp_zipf_draw(&zipf, &draw)) & 1;
        qsort(feature, FEATURES_DRAWN, sizeof feature[0], by_value);
        (void)fputs(2 * odd > FEATURES_DRAWN ? "1" : "0", file);
        for (uint32_t i = 0; i < FEATURES_DRAWN; i++)
            if (i == 0 || feature[i] != feature[i - 1])
                (void)fprintf(file, " %" PRIu64 ":1", feature[i]);
        (void)fputc('\n', file);
    }
}

static void write_u32(FILE *file, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        (void)fputc((int)(value >> shift & 255), file);
}

/* Each class has pixels of its own that are dark, and noise. */
static void write_images(FILE *file, FILE *labels, uint64_t rows)
{
    struct dp_draw draw = {SEED};
    unsigned char shape[CLASSES][PIXELS], image[PIXELS];
    for (uint32_t c = 0; c < CLASSES; c++)
        for (uint32_t p = 0; p < PIXELS; p++)
            shape[c][p] = dp_draw_below(&draw, 5) == 0 ? 160 : 0;
    write_u32(file, 0x803);
    write_u32(file, (uint32_t)rows);
    write_u32(file, SIDE);
    write_u32(file, SIDE);
    write_u32(labels, 0x801);
    write_u32(labels, (uint32_t)rows);
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t noise = 0, class = dp_draw_below(&draw, CLASSES);
        for (uint32_t p = 0; p < PIXELS; p++, noise >>= 8) {
            noise = p % 8 == 0 ? dp_draw_u64(&draw) : noise;
            image[p] = (unsigned char)(shape[class][p] ? shape[class][p] + (noise & 63) : 0);
        }
        (void)fwrite(image, 1, sizeof image, file);
        (void)fputc((int)class, labels);
    }
}

static void write_pairs(FILE *file, uint64_t rows)
{
    struct dp_draw draw = {SEED};
    struct dp_zipf zipf;
    dp_zipf_init(&zipf, ITEMS, ZIPF);
    for (uint64_t r = 0; r < rows; r++)
        (void)fprintf(file, "%" PRIu64 " %" PRIu64 "\n", dp_draw_below(&draw, rows / PAIRS_OF_USER + 1),
                      dp_zipf_draw(&zipf, &draw));
}

static enum dp_status write_clicks(FILE *file, uint64_t rows, struct dp_error *err)
{
    char line[DP_CLICKS_LINE_BYTES];
    struct dp_clicks_row row;
    struct dp_clicks *clicks = NULL;
    enum dp_status st = dp_clicks_new(CLICK_FEATURES, 1, &clicks, err);
    for (uint64_t r = 0; st == DP_OK && r < rows; r++) {
        dp_clicks_draw(clicks, r, &row);
        (void)fwrite(line, 1, dp_clicks_line(clicks, &row, line), file);
    }
    dp_clicks_free(&clicks);
    return st;
}

static void write_text(FILE *file, uint64_t words)
{
    struct dp_draw draw = {SEED};
    struct dp_zipf zipf;
    dp_zipf_init(&zipf, WORDS, ZIPF);
    for (uint64_t w = 0; w < words; w++) {
        char word[8];
        size_t len = 0;
        for (uint64_t rest = dp_zipf_draw(&zipf, &draw); rest > 0; rest /= 20)
            word[len++] = "etaoinshrdlcumwfgypb"[rest % 20];
        word[len++] = w % WORDS_OF_LINE == WORDS_OF_LINE - 1 ? '\n' : ' ';
        (void)fwrite(word, 1, len, file);
    }
}

/* What went wrong in between is known to the stream. */
static enum dp_status finish(FILE *file, const char *path, struct dp_error *err)
{
    bool bad = ferror(file) != 0;
    bad |= fclose(file) != 0;
    return bad ? dp_fail(err, DP_IO, "cannot write '%s': %s", path,
                         errno ? strerror(errno) : "input/output error")
               : DP_OK;
}

enum dp_status dp_bench_train_data_write(enum dp_bench_train_data data, uint64_t rows, const char *path,
                                         const char *labels_path, struct dp_error *err)
{
    errno = 0;
    FILE *labels = data == DP_BENCH_TRAIN_IMAGES ? fopen(labels_path, "we") : NULL;
    if (data == DP_BENCH_TRAIN_IMAGES && !labels)
        return dp_fail(err, DP_IO, "cannot write '%s': %s", labels_path, strerror(errno));
    enum dp_status st = DP_OK, closed = DP_OK;
    FILE *file = fopen(path, "we");
    if (!file)
        st = dp_fail(err, DP_IO, "cannot write '%s': %s", path, strerror(errno));
    else if (data == DP_BENCH_TRAIN_SPARSE)
        write_sparse(file, rows);
    else if (data == DP_BENCH_TRAIN_IMAGES)
        write_images(file, labels, rows);
    else if (data == DP_BENCH_TRAIN_PAIRS)
        write_pairs(file, rows);
    else if (data == DP_BENCH_TRAIN_TEXT)
        write_text(file, rows);
    else
        st = write_clicks(file, rows, err);
    if (file)
        closed = finish(file, path, st == DP_OK ? err : NULL);
    if (st == DP_OK)
        st = closed;
    if (labels)
        closed = finish(labels, labels_path, st == DP_OK ? err : NULL);
    return st == DP_OK ? closed : st;
}
