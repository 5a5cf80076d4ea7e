/* Driver: runs a libFuzzer target without libFuzzer, over mutations of a corpus, from one seed: the short
 * form that any compiler builds. With clang, DP_LIBFUZZER=ON links the real one (tests/fuzz/README.md).
 *     fuzz_request CORPUS-DIRECTORY [RUNS [SEED]]
 * The seed decides everything: a failure comes again with it. */
#include "common/base/status.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX  4096u
#define INPUTS_MAX 256u
#define RUNS       100000u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct input {
    size_t size;
    uint8_t bytes[INPUT_MAX];
};

struct driver {
    uint64_t state;
    uint32_t inputs;
    struct input input[INPUTS_MAX];
};

/* xorshift64* (Vigna 2016) */
static uint64_t draw(struct driver *driver)
{
    driver->state ^= driver->state >> 12;
    driver->state ^= driver->state << 25;
    driver->state ^= driver->state >> 27;
    return driver->state * 0x2545f4914f6cdd1du;
}
static size_t below(struct driver *driver, size_t n)
{
    return n ? (size_t)(draw(driver) % n) : 0;
}

static void mutate_once(struct driver *driver, struct input *input)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '\n', ' ', ':', '-', '9', '#', '\r'};
    size_t at = below(driver, input->size);
    switch (draw(driver) % 6) {
    case 0:
        if (input->size > 0)
            input->bytes[at] ^= (uint8_t)(1u << draw(driver) % 8);
        break;
    case 1:
        if (input->size > 0)
            input->bytes[at] = edges[below(driver, sizeof edges)];
        break;
    case 2: /* one byte more */
        if (input->size < INPUT_MAX) {
            memmove(input->bytes + at + 1, input->bytes + at, input->size - at);
            input->bytes[at] = (uint8_t)draw(driver);
            input->size++;
        }
        break;
    case 3: /* some bytes fewer */
        if (input->size > 0) {
            size_t n = 1 + below(driver, input->size - at);
            memmove(input->bytes + at, input->bytes + at + n, input->size - at - n);
            input->size -= n;
        }
        break;
    case 4: /* cut off */
        input->size = at;
        break;
    default: { /* the end of another one */
        const struct input *other = &driver->input[below(driver, driver->inputs)];
        size_t from = below(driver, other->size), n = other->size - from;
        n = n < INPUT_MAX - at ? n : INPUT_MAX - at;
        memmove(input->bytes + at, other->bytes + from, n);
        input->size = at + n;
    }
    }
}

static int read_corpus(struct driver *driver, const char *directory)
{
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir)) && driver->inputs < INPUTS_MAX;) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file) {
            struct input *input = &driver->input[driver->inputs++];
            input->size = fread(input->bytes, 1, INPUT_MAX, file);
            (void)fclose(file);
        }
    }
    if (dir)
        (void)closedir(dir);
    return driver->inputs > 0;
}

int main(int argc, char **argv)
{
    struct driver *driver = calloc(1, sizeof *driver);
    struct input *input = calloc(1, sizeof *input);
    uint64_t runs = argc > 2 ? strtoull(argv[2], NULL, 10) : RUNS;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (!driver || !input || argc < 2 || !read_corpus(driver, argv[1])) {
        (void)fprintf(stderr, "usage: %s CORPUS-DIRECTORY [RUNS [SEED]] (the directory must have files)\n",
                      argv[0]);
        return 2;
    }
    driver->state = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t i = 0; i < driver->inputs; i++)
        (void)LLVMFuzzerTestOneInput(driver->input[i].bytes, driver->input[i].size);
    for (uint64_t run = 0; run < runs; run++) {
        *input = driver->input[below(driver, driver->inputs)];
        for (uint64_t n = 1 + draw(driver) % 6; n > 0; n--)
            mutate_once(driver, input);
        (void)LLVMFuzzerTestOneInput(input->bytes, input->size);
    }
    printf("%" PRIu64 " runs, %" PRIu32 " inputs in the corpus, seed %" PRIu64 "\n", runs, driver->inputs,
           seed);
    free(input);
    free(driver);
    return 0;
}
