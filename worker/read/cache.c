/* File: the head, then each array at a multiple of 64 bytes. Numbers are u64 in this machine's byte order:
 * the magic number of a machine with another one does not match. */
#include "worker/read/cache.h"

#include "common/base/full_io.h"
#include "common/base/log.h"
#include "common/env/atomic_file.h"
#include "common/model/mix.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x3165686361437044) /* "DpCache1" */
/* Raise it when the layout of the file, or what a format decodes, changes. */
#define VERSION     UINT64_C(14)
#define SOURCES_MAX 4
#define ARRAYS      8
#define ALIGN       UINT64_C(64)
#define PATH_BYTES  4096
#define ENDING      ".decoded"

struct source {
    uint64_t size, mtime_ns, digest;
};

struct head {
    uint64_t magic, version, bytes; /* of the whole file */
    uint64_t fingerprint;           /* of the options that affect decoding */
    uint64_t sources;
    struct source source[SOURCES_MAX];
    uint64_t examples, digest, label_base, lists, facts[DP_CONTENT_FACTS];
    struct {
        uint64_t at, count, sum;
    } array[ARRAYS];
    uint64_t sum; /* of the head before it */
};

struct array {
    void **at;
    uint64_t *count;
    size_t each;
};

static void arrays_of(struct dp_content *c, struct array out[ARRAYS])
{
    const struct array arrays[ARRAYS] = {
        {(void **)&c->labels, &c->labels_len, sizeof *c->labels},
        {(void **)&c->weights, &c->weights_len, sizeof *c->weights},
        {(void **)&c->offsets, &c->offsets_len, sizeof *c->offsets},
        {(void **)&c->keys, &c->keys_len, sizeof *c->keys},
        {(void **)&c->values, &c->values_len, sizeof *c->values},
        {(void **)&c->pixels, &c->pixels_len, sizeof *c->pixels},
        {(void **)&c->codes, &c->codes_len, sizeof *c->codes},
        {(void **)&c->schema, &c->schema_len, sizeof *c->schema},
    };
    memcpy(out, arrays, sizeof arrays);
}

/* Protects against damage and chance, not against a forger. Four parallel sums keep a core's multipliers
 * busy. */
static uint64_t sum_of(uint64_t seed, const void *bytes, uint64_t len)
{
    const unsigned char *at = bytes;
    uint64_t lane[4] = {seed, seed + 1, seed + 2, seed + 3}, word[4] = {0};
    for (; len >= sizeof word; at += sizeof word, len -= sizeof word) {
        memcpy(word, at, sizeof word);
        for (int i = 0; i < 4; i++) {
            lane[i] = (lane[i] ^ word[i]) * DP_HASH_GOLDEN;
            lane[i] ^= lane[i] >> 29;
        }
    }
    memset(word, 0, sizeof word);
    if (len > 0)
        memcpy(word, at, len);
    for (int i = 0; i < 4; i++)
        seed = dp_mix(seed + lane[i]) ^ dp_mix(word[i] + (uint64_t)i + len * DP_HASH_GOLDEN);
    return seed;
}

/* ---- sources and options */

struct cache_place {
    char path[PATH_BYTES];
    uint64_t fingerprint;
    uint64_t sources;
    const char *source_path[SOURCES_MAX]; /* of the options */
    struct source source[SOURCES_MAX];
};

static uint64_t add_text(uint64_t sum, const char *text)
{
    return text ? sum_of(sum + 1, text, strlen(text)) : dp_mix(sum);
}

/* Without sizes, times and names of the sources: a change of those gets another message than changed
 * options. */
static uint64_t fingerprint_of(const struct dp_dataset_options *o, const struct dp_format *format)
{
    const uint64_t numbers[] = {VERSION,           (uint64_t)o->labels, o->classes,
                                (uint64_t)o->form, o->fields,           o->pooled,
                                o->width,          o->index_base,       o->window,
                                o->hash_bits,      o->normalize,        (uint64_t)o->scored,
                                o->standardize,    o->label_base,       (uint64_t)o->word_rule,
                                o->min_count,      o->new_ignored,      o->missing_empty,
                                o->rated,          o->weighs,           o->with_held};
    uint64_t sum = sum_of(0, numbers, sizeof numbers);
    sum = sum_of(sum, &o->scale, sizeof o->scale);
    sum = sum_of(sum, &o->subsample, sizeof o->subsample);
    if (format->holds_out && (o->holdout != DP_HOLDOUT_NONE || o->held_out > 0)) {
        const uint64_t held[] = {(uint64_t)o->holdout, o->held, o->held_test, o->seed};
        const double shares[] = {o->holdout_share, o->held_out};
        sum = sum_of(sum_of(sum, held, sizeof held), shares, sizeof shares);
    }
    sum = add_text(sum, format->name);
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        sum = add_text(sum, o->roles[role]);
    sum = add_text(sum, o->label);
    const char *const texts[] = {o->encoding, o->ignore, o->id, o->missing, o->weight, o->lists};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        sum = add_text(sum, texts[i]);
    return add_text(sum, o->categories);
}

/* A schema of another file affects decoding, as that file itself would. */
static enum dp_status add_schema(const struct dp_schema *like, uint64_t *sum, struct dp_error *err)
{
    char *text = NULL;
    enum dp_status st = like ? dp_schema_write(like, &text, err) : DP_OK;
    *sum = add_text(*sum, text);
    free(text);
    return st;
}

static enum dp_status stat_source(const char *path, struct source *out, struct dp_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return dp_fail(err, DP_IO, "%s: cannot read: %s", path, strerror(errno));
    enum dp_status st = dp_unpack_check_kind(path, info.st_mode, err);
    if (st != DP_OK)
        return st;
    out->size = (uint64_t)info.st_size;
    out->mtime_ns = (uint64_t)info.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)info.st_mtim.tv_nsec;
    return DP_OK;
}

/* Reads the whole file: much faster than decoding, and more reliable than its time. */
static enum dp_status measure(const char *path, struct source *out, struct dp_error *err)
{
    const size_t room = 1u << 20;
    enum dp_status st = stat_source(path, out, err);
    unsigned char *bytes = st == DP_OK ? malloc(room) : NULL;
    int fd = bytes ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (st == DP_OK && fd < 0)
        st = dp_fail(err, bytes ? DP_IO : DP_NOMEM, "%s: cannot read: %s", path, strerror(errno));
    out->digest = 0;
    off_t at = 0;
    for (size_t have = room; st == DP_OK && have == room; at += (off_t)have) {
        have = dp_full_pread(fd, bytes, room, at);
        if (have < room && errno != 0)
            st = dp_fail(err, DP_IO, "%s: cannot read: %s", path, strerror(errno));
        out->digest = sum_of(out->digest, bytes, have);
    }
    if (fd >= 0)
        (void)close(fd);
    free(bytes);
    return st;
}

static enum dp_status find_place(const struct dp_dataset_options *o, const struct dp_format *format,
                                 struct cache_place *out, struct dp_error *err)
{
    const char *paths[SOURCES_MAX] = {o->path, o->negatives_path, o->interactions_path};
    *out = (struct cache_place){.fingerprint = fingerprint_of(o, format)};
    enum dp_status status = add_schema(o->like, &out->fingerprint, err);
    uint64_t name = out->fingerprint;
    if (status != DP_OK)
        return status;
    for (int i = 0; i < SOURCES_MAX; i++) {
        name = add_text(name, paths[i]);
        if (!paths[i])
            continue;
        out->source_path[out->sources] = paths[i];
        enum dp_status st = measure(paths[i], &out->source[out->sources++], err);
        if (st != DP_OK)
            return st;
    }
    int len = snprintf(out->path, sizeof out->path, "%s/%016" PRIx64 ENDING, o->cache, name);
    if (len < 0 || (size_t)len >= sizeof out->path)
        return dp_fail(err, DP_ARGUMENT, "the path of the cache is too long: '%.64s...'", o->cache);
    return DP_OK;
}

/* ---- reading */

/* Returns NULL, or what is wrong with the file. */
static const char *check_head(const struct head *head, uint64_t bytes, const struct cache_place *place)
{
    if (bytes < sizeof *head || head->magic != MAGIC)
        return "is not a cache file";
    if (head->sum != sum_of(0, head, offsetof(struct head, sum)) || head->bytes != bytes)
        return "is damaged";
    if (head->version != VERSION || head->fingerprint != place->fingerprint)
        return "was made by another version or other settings";
    if (head->sources != place->sources)
        return "was made from other files";
    for (uint64_t i = 0; i < place->sources; i++)
        if (head->source[i].size != place->source[i].size ||
            head->source[i].digest != place->source[i].digest)
            return "was made from a file that has changed since";
    return NULL;
}

static const char *take_arrays(const struct head *head, struct dp_content *content)
{
    struct array arrays[ARRAYS];
    unsigned char *base = content->mapped;
    arrays_of(content, arrays);
    for (int i = 0; i < ARRAYS; i++) {
        uint64_t at = head->array[i].at, count = head->array[i].count;
        if (at % ALIGN != 0 || at > head->bytes || count > (head->bytes - at) / arrays[i].each)
            return "is damaged";
        if (head->array[i].sum != sum_of(0, base + at, count * arrays[i].each))
            return "is damaged";
        *arrays[i].at = base + at;
        *arrays[i].count = count;
    }
    content->examples = head->examples;
    content->digest = head->digest;
    content->lists = head->lists;
    content->label_base = (uint32_t)head->label_base;
    memcpy(content->facts, head->facts, sizeof content->facts);
    return NULL;
}

/* Maps the cache file into an empty content. Returns NULL when done, "" when there is none, else what is
 * wrong with it. */
static const char *map(const struct cache_place *place, struct dp_content *out)
{
    struct stat info;
    const char *wrong = "cannot be read";
    int fd = open(place->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? "" : wrong;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        size_t bytes = (size_t)info.st_size;
        void *mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED) {
            out->mapped = mapped;
            out->mapped_bytes = bytes;
            wrong = check_head(mapped, bytes, place);
            if (!wrong)
                wrong = take_arrays(mapped, out);
        }
    }
    (void)close(fd);
    if (wrong)
        dp_content_clear(out);
    return wrong;
}

/* ---- writing */

static uint64_t aligned(uint64_t at)
{
    return (at + ALIGN - 1) / ALIGN * ALIGN;
}

static bool write_content(int fd, const struct cache_place *place, struct dp_content *content)
{
    static const char zeros[ALIGN];
    struct array arrays[ARRAYS];
    struct head head = {.magic = MAGIC,
                        .version = VERSION,
                        .fingerprint = place->fingerprint,
                        .sources = place->sources,
                        .examples = content->examples,
                        .digest = content->digest,
                        .label_base = content->label_base,
                        .lists = content->lists};
    uint64_t at = aligned(sizeof head);
    arrays_of(content, arrays);
    memcpy(head.source, place->source, sizeof head.source);
    memcpy(head.facts, content->facts, sizeof head.facts);
    for (int i = 0; i < ARRAYS; i++) {
        uint64_t count = *arrays[i].count, len = count * arrays[i].each;
        head.array[i].at = at;
        head.array[i].count = count;
        head.array[i].sum = sum_of(0, len ? *arrays[i].at : zeros, len);
        at = aligned(at + len);
    }
    head.bytes = at;
    head.sum = sum_of(0, &head, offsetof(struct head, sum));
    bool good =
        dp_full_write(fd, &head, sizeof head) && dp_full_write(fd, zeros, aligned(sizeof head) - sizeof head);
    for (int i = 0; good && i < ARRAYS; i++) {
        uint64_t len = *arrays[i].count * arrays[i].each;
        good = dp_full_write(fd, *arrays[i].at, len) && dp_full_write(fd, zeros, aligned(len) - len);
    }
    return good;
}

/* Returns the source that changed while it was decoded, so that the result is of neither version; NULL: none
 * did. Compares size, time and all bytes: an edit in place may keep the size, a copy the time. */
static const char *changed_source(const struct cache_place *place)
{
    for (uint64_t i = 0; i < place->sources; i++) {
        const struct source *then = &place->source[i];
        struct source now = {0};
        if (measure(place->source_path[i], &now, NULL) != DP_OK || now.size != then->size ||
            now.mtime_ns != then->mtime_ns || now.digest != then->digest)
            return place->source_path[i];
    }
    return NULL;
}

static enum dp_status write_file(const struct dp_dataset_options *o, const struct cache_place *place,
                                 struct dp_content *content, struct dp_error *err)
{
    struct dp_atomic_file file;
    const char *changed = changed_source(place);
    if (changed)
        return dp_fail(err, DP_DATA, "'%s' changed while it was read", changed);
    if (mkdir(o->cache, 0777) != 0 && errno != EEXIST)
        return dp_fail(err, DP_IO, "cannot make the directory '%s': %s", o->cache, strerror(errno));
    uint32_t swept = dp_atomic_file_sweep(o->cache, ENDING);
    if (swept > 0)
        dp_log(DP_LOG_INFO,
               "removed %" PRIu32 " unfinished files, of interrupted starts, from the cache '%s'", swept,
               o->cache);
    enum dp_status st = dp_atomic_file_open(place->path, &file, err);
    if (st != DP_OK)
        return st;
    if (write_content(fileno(file.stream), place, content))
        return dp_atomic_file_commit(&file, err);
    st = dp_fail(err, DP_IO, "cannot write '%s': %s", place->path, strerror(errno));
    dp_atomic_file_drop(&file);
    return st;
}

static bool write_cache(const struct dp_dataset_options *o, const struct cache_place *place,
                        struct dp_content *content)
{
    struct dp_error err = {0};
    if (write_file(o, place, content, &err) == DP_OK)
        return true;
    dp_log(DP_LOG_WARN, "cannot cache %s: %s", o->path, err.text);
    return false;
}

/* Decodes, and writes a cache file for the next start. The source is opened after it was measured, on
 * purpose: an earlier handle may have an old state in its buffer, or refer to a replaced file. */
static enum dp_status build(const struct dp_dataset_options *options, const struct dp_format *format,
                            const struct cache_place *place, struct dp_content *out, struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    enum dp_status st = dp_unpack_open_text(options->path, options->encoding, &unpack, err);
    if (st == DP_OK)
        st = format->load(options, unpack, out, err);
    dp_unpack_close(&unpack);
    if (st != DP_OK || !write_cache(options, place, out))
        return st;
    /* From now on like every other process: the same pages, once in memory. */
    struct dp_content mapped = {0};
    if (map(place, &mapped) == NULL) {
        dp_content_clear(out);
        *out = mapped;
    }
    return DP_OK;
}

enum dp_status dp_cache_get(const struct dp_dataset_options *options, const struct dp_format *format,
                            struct dp_content *out, struct dp_error *err)
{
    struct cache_place *place = calloc(1, sizeof *place);
    if (!place)
        return dp_fail(err, DP_NOMEM, "%s: no memory for its cache", options->path);
    enum dp_status st = find_place(options, format, place, err);
    if (st == DP_OK) {
        const char *wrong = map(place, out);
        if (wrong && *wrong)
            dp_log(DP_LOG_INFO, "the cache '%s' of %s %s: making it again", place->path, options->path,
                   wrong);
        if (wrong)
            st = build(options, format, place, out, err);
    }
    free(place);
    return st;
}
