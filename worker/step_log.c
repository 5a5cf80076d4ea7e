#include "worker/step_log.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/model/mix.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC       UINT64_C(0x31474f4c50455453) /* "STEPLOG1" */
#define HEAD_BYTES  16u                          /* in front of each payload */
#define STEP_BYTES  32u
#define SUM_BYTES   48u
#define PLAN_BYTES  16u /* before the text */
#define NOTE_BYTES  8u  /* before the caller's */
#define DEAD_BYTES  (64u << 10)
#define DEAD_STEPS  65536u
#define PAYLOAD_MAX (1u << 20)
#define FILE_MAX    (UINT64_C(4) << 30)
#define BEHIND      64u /* pushes that may be unanswered: no sum goes past them */

enum kind { HEAD = 1, PLAN, STEP, SUM, NOTE };

struct bytes {
    unsigned char *at;
    size_t size, room;
};

/* A push, and the sum before it. */
struct recent {
    struct dp_step step;
    struct dp_step_sum before;
};

struct dp_step_log {
    char path[PATH_MAX];
    int fd;
    struct dp_step_log_id id;
    uint64_t seed;
    struct dp_step_log_plan plan;
    char *text;
    struct bytes kept;                /* records: plan, sums of whole epochs, notes of each epoch */
    struct bytes last[DP_STEP_NOTES]; /* records: of the kinds that have one */
    struct bytes part;                /* record: the sum of the epoch under way */
    struct dp_step *steps;            /* those read at open, in the order of the file */
    size_t steps_len, steps_room;
    uint64_t size, live; /* of the file; of what it would be, written anew */
    uint64_t tidy_at;    /* not before the file has this size */
    uint32_t since;      /* steps in this epoch since the last sum */
    struct recent recent[BEHIND];
    uint64_t recent_len;
    uint32_t recent_epoch;
    uint32_t last_epoch;
    uint64_t last_groups;
    bool told;
};

/* ---- records */

static uint64_t checksum(uint64_t seed, const unsigned char *bytes, size_t size)
{
    uint64_t sum = dp_mix(seed + 1 + size);
    for (; size >= 8; bytes += 8, size -= 8)
        sum = dp_mix(sum ^ dp_load_u64le(bytes)) + 1;
    uint64_t tail = 0;
    memcpy(&tail, bytes, size);
    return dp_mix(sum ^ tail);
}

static uint64_t seed_of(const struct dp_step_log_id *id)
{
    return dp_mix(dp_mix(id->cluster + 1) + id->run) + id->worker;
}

static bool reserve(struct bytes *bytes, size_t more)
{
    if (bytes->room - bytes->size >= more)
        return true;
    size_t room = (bytes->size + more) * 2;
    unsigned char *at = realloc(bytes->at, room);
    if (!at)
        return false;
    bytes->at = at;
    bytes->room = room;
    return true;
}

static bool append(struct bytes *bytes, const void *more, size_t size)
{
    if (!reserve(bytes, size))
        return false;
    if (size > 0) /* memcpy takes no NULL */
        memcpy(bytes->at + bytes->size, more, size);
    bytes->size += size;
    return true;
}

/* In place: the payload is behind HEAD_BYTES. Returns the record's bytes. */
static size_t seal(unsigned char *record, uint64_t seed, enum kind kind, size_t payload)
{
    dp_store_u32le(record + 8, kind);
    dp_store_u32le(record + 12, (uint32_t)payload);
    dp_store_u64le(record, checksum(seed, record + 8, 8 + payload));
    return HEAD_BYTES + payload;
}

static void put_f64(unsigned char *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    dp_store_u64le(to, bits);
}

static double get_f64(const unsigned char *from)
{
    uint64_t bits = dp_load_u64le(from);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static size_t pack_head(const struct dp_step_log_id *id, unsigned char record[HEAD_BYTES + 24])
{
    unsigned char *to = record + HEAD_BYTES;
    dp_store_u64le(to, MAGIC);
    dp_store_u64le(to + 8, id->cluster);
    dp_store_u32le(to + 16, id->run);
    dp_store_u32le(to + 20, id->worker);
    return seal(record, 0, HEAD, 24);
}

static size_t pack_step(const struct dp_step *step, uint64_t seed,
                        unsigned char record[HEAD_BYTES + STEP_BYTES])
{
    unsigned char *to = record + HEAD_BYTES;
    dp_store_u32le(to, step->epoch);
    dp_store_u32le(to + 4, step->examples);
    dp_store_u64le(to + 8, step->group);
    put_f64(to + 16, step->loss_sum);
    put_f64(to + 24, step->seconds);
    return seal(record, seed, STEP, STEP_BYTES);
}

static size_t pack_sum(uint32_t epoch, bool whole, const struct dp_step_sum *sum, uint64_t seed,
                       unsigned char record[HEAD_BYTES + SUM_BYTES])
{
    unsigned char *to = record + HEAD_BYTES;
    dp_store_u32le(to, epoch);
    dp_store_u32le(to + 4, whole);
    dp_store_u64le(to + 8, sum->groups);
    dp_store_u64le(to + 16, sum->examples);
    put_f64(to + 24, sum->loss_sum);
    put_f64(to + 32, sum->begun);
    put_f64(to + 40, sum->seconds);
    return seal(record, seed, SUM, SUM_BYTES);
}

/* ---- writing */

static void tell(struct dp_step_log *log, const char *what)
{
    if (!log->told)
        dp_log(DP_LOG_WARN,
               "%s '%s': %s; training goes on, but figures may be missing should it be stopped and resumed",
               what, log->path, strerror(errno));
    log->told = true;
}

static bool write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static void put(struct dp_step_log *log, const unsigned char *record, size_t size)
{
    if (log->fd < 0)
        return;
    if (write_all(log->fd, record, size)) {
        log->size += size;
        return;
    }
    tell(log, "cannot write");
    (void)!ftruncate(log->fd, (off_t)log->size); /* half a record would end the reading there */
}

/* The file anew, of what is needed. */
static void tidy(struct dp_step_log *log)
{
    char path[PATH_MAX + 8];
    unsigned char head[HEAD_BYTES + 24], record[HEAD_BYTES + STEP_BYTES];
    struct bytes all = {0};
    bool good = append(&all, head, pack_head(&log->id, head)) && append(&all, log->kept.at, log->kept.size);
    for (int k = 0; k < DP_STEP_NOTES; k++)
        good = good && append(&all, log->last[k].at, log->last[k].size);
    good = good && append(&all, log->part.at, log->part.size);
    uint64_t n = log->recent_len < BEHIND ? log->recent_len : BEHIND;
    for (uint64_t i = log->recent_len - n; good && log->since > 0 && i < log->recent_len; i++)
        good = append(&all, record, pack_step(&log->recent[i % BEHIND].step, log->seed, record));
    log->tidy_at = log->size + DEAD_BYTES; /* for the next try, should this one fail */
    (void)snprintf(path, sizeof path, "%s.new", log->path);
    int fd = good ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd >= 0 && write_all(fd, all.at, all.size) && rename(path, log->path) == 0) {
        (void)close(log->fd);
        log->fd = fd;
        log->size = all.size;
        log->tidy_at = all.size * 2 + DEAD_BYTES;
    } else if (good) {
        tell(log, "cannot shorten");
        if (fd >= 0)
            (void)close(fd);
        (void)unlink(path);
    }
    free(all.at);
}

void dp_step_log_set_plan(struct dp_step_log *log, const struct dp_step_log_plan *plan, const char *text)
{
    size_t size = strlen(text);
    unsigned char *record = malloc(HEAD_BYTES + PLAN_BYTES + size);
    char *copy = strdup(text);
    if (record && copy) {
        dp_store_u32le(record + HEAD_BYTES, plan->epochs);
        dp_store_u32le(record + HEAD_BYTES + 4, 0);
        dp_store_u64le(record + HEAD_BYTES + 8, plan->groups);
        memcpy(record + HEAD_BYTES + PLAN_BYTES, text, size);
        size_t all = seal(record, log->seed, PLAN, PLAN_BYTES + size);
        (void)append(&log->kept, record, all);
        put(log, record, all);
        free(log->text);
        log->text = copy;
        log->plan = *plan;
        copy = NULL;
    }
    free(copy);
    free(record);
}

/* The pushes before the oldest recent one are answered: one record stands for them. */
static void sum_up(struct dp_step_log *log)
{
    unsigned char record[HEAD_BYTES + SUM_BYTES];
    const struct recent *oldest = &log->recent[log->recent_len % BEHIND];
    DP_ASSERT(log->recent_len >= BEHIND);
    size_t size = pack_sum(log->recent_epoch, false, &oldest->before, log->seed, record);
    log->part.size = 0;
    (void)append(&log->part, record, size);
    tidy(log);
    log->since = BEHIND;
}

void dp_step_log_add(struct dp_step_log *log, const struct dp_step *step, const struct dp_step_sum *sum)
{
    unsigned char record[HEAD_BYTES + STEP_BYTES];
    put(log, record, pack_step(step, log->seed, record));
    if (step->epoch != log->recent_epoch || sum->groups != step->group)
        log->recent_len = log->since =
            0; /* a sum is of all pushes before: not where some are found later on */
    log->recent_epoch = step->epoch;
    if (sum->groups == step->group)
        log->recent[log->recent_len++ % BEHIND] = (struct recent){.step = *step, .before = *sum};
    if (++log->since >= DEAD_STEPS && log->recent_len >= BEHIND)
        sum_up(log);
}

void dp_step_log_epoch(struct dp_step_log *log, uint32_t epoch, const struct dp_step_sum *sum)
{
    unsigned char record[HEAD_BYTES + SUM_BYTES];
    size_t size = pack_sum(epoch, true, sum, log->seed, record);
    (void)append(&log->kept, record, size);
    put(log, record, size);
    log->part.size = 0;
    log->recent_len = log->since = 0;
    if (log->size > log->tidy_at)
        tidy(log);
}

static bool of_each_epoch(enum dp_step_note kind)
{
    return kind == DP_STEP_TEST || kind == DP_STEP_VALIDATION;
}

void dp_step_log_note(struct dp_step_log *log, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                      size_t size)
{
    unsigned char *record = size <= PAYLOAD_MAX - NOTE_BYTES ? malloc(HEAD_BYTES + NOTE_BYTES + size) : NULL;
    if (!record)
        return;
    dp_store_u32le(record + HEAD_BYTES, kind);
    dp_store_u32le(record + HEAD_BYTES + 4, epoch);
    if (size)
        memcpy(record + HEAD_BYTES + NOTE_BYTES, bytes, size);
    size_t all = seal(record, log->seed, NOTE, NOTE_BYTES + size);
    struct bytes *to = of_each_epoch(kind) ? &log->kept : &log->last[kind];
    if (!of_each_epoch(kind))
        to->size = 0;
    (void)append(to, record, all);
    put(log, record, all);
    free(record);
}

/* ---- reading */

static void learn_step(struct dp_step_log *log, const unsigned char *from)
{
    struct dp_step step = {.epoch = dp_load_u32le(from),
                           .examples = dp_load_u32le(from + 4),
                           .group = dp_load_u64le(from + 8),
                           .loss_sum = get_f64(from + 16),
                           .seconds = get_f64(from + 24)};
    if (log->steps_len == log->steps_room) {
        size_t room = log->steps_room ? log->steps_room * 2 : 1024;
        struct dp_step *steps = realloc(log->steps, room * sizeof *steps);
        if (!steps)
            return; /* its figures will be missing */
        log->steps = steps;
        log->steps_room = room;
    }
    log->steps[log->steps_len++] = step;
    if (step.epoch > log->last_epoch || (step.epoch == log->last_epoch && step.group >= log->last_groups)) {
        log->last_epoch = step.epoch;
        log->last_groups = step.group + 1;
    }
}

static void learn_sum(struct dp_step_log *log, const unsigned char *record)
{
    const unsigned char *from = record + HEAD_BYTES;
    uint32_t epoch = dp_load_u32le(from);
    bool whole = dp_load_u32le(from + 4) & 1;
    size_t left = 0;
    if (whole) {
        (void)append(&log->kept, record, HEAD_BYTES + SUM_BYTES);
        log->part.size = 0;
    } else {
        log->part.size = 0;
        (void)append(&log->part, record, HEAD_BYTES + SUM_BYTES);
    }
    for (size_t i = 0; whole && i < log->steps_len; i++)
        if (log->steps[i].epoch != epoch)
            log->steps[left++] = log->steps[i];
    if (whole)
        log->steps_len = left;
    if (epoch > log->last_epoch || (epoch == log->last_epoch && dp_load_u64le(from + 8) > log->last_groups)) {
        log->last_epoch = epoch;
        log->last_groups = dp_load_u64le(from + 8);
    }
}

static void learn_plan(struct dp_step_log *log, const unsigned char *record, size_t payload)
{
    const unsigned char *from = record + HEAD_BYTES;
    char *text = strndup((const char *)from + PLAN_BYTES, payload - PLAN_BYTES);
    if (!text)
        return;
    free(log->text);
    log->text = text;
    log->plan = (struct dp_step_log_plan){.epochs = dp_load_u32le(from), .groups = dp_load_u64le(from + 8)};
    (void)append(&log->kept, record, HEAD_BYTES + payload);
}

/* false: it is no record of this log. */
static bool learn(struct dp_step_log *log, const unsigned char *record, size_t payload)
{
    uint32_t kind = dp_load_u32le(record + 8);
    if (kind == STEP && payload == STEP_BYTES) {
        learn_step(log, record + HEAD_BYTES);
    } else if (kind == SUM && payload == SUM_BYTES) {
        learn_sum(log, record);
    } else if (kind == PLAN && payload >= PLAN_BYTES) {
        learn_plan(log, record, payload);
    } else if (kind == NOTE && payload >= NOTE_BYTES) {
        uint32_t note = dp_load_u32le(record + HEAD_BYTES);
        if (note >= DP_STEP_NOTES)
            return false;
        struct bytes *to = of_each_epoch((enum dp_step_note)note) ? &log->kept : &log->last[note];
        if (to != &log->kept)
            to->size = 0;
        (void)append(to, record, HEAD_BYTES + payload);
    } else {
        return false;
    }
    return true;
}

static bool is_sound(const unsigned char *record, size_t left, uint64_t seed)
{
    if (left < HEAD_BYTES || dp_load_u32le(record + 12) > PAYLOAD_MAX ||
        left - HEAD_BYTES < dp_load_u32le(record + 12))
        return false;
    return dp_load_u64le(record) == checksum(seed, record + 8, 8 + dp_load_u32le(record + 12));
}

/* Bytes of it that are this log's; 0: it has no head. */
static size_t parse(struct dp_step_log *log, const unsigned char *bytes, size_t size)
{
    const unsigned char *head = bytes + HEAD_BYTES;
    if (!is_sound(bytes, size, 0) || dp_load_u32le(bytes + 8) != HEAD || dp_load_u32le(bytes + 12) != 24 ||
        dp_load_u64le(head) != MAGIC)
        return 0;
    log->id = (struct dp_step_log_id){.cluster = dp_load_u64le(head + 8),
                                      .run = dp_load_u32le(head + 16),
                                      .worker = dp_load_u32le(head + 20)};
    log->seed = seed_of(&log->id);
    size_t at = HEAD_BYTES + 24;
    while (is_sound(bytes + at, size - at, log->seed)) {
        size_t payload = dp_load_u32le(bytes + at + 12);
        if (!learn(log, bytes + at, payload))
            break;
        at += HEAD_BYTES + payload;
    }
    return at;
}

static enum dp_status read_file(const char *path, struct bytes *out, struct dp_error *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "cannot read '%.300s': %s", path,
                       strerror(errno));
    enum dp_status st = DP_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size > FILE_MAX)
        st = dp_fail(err, DP_IO, "cannot read '%.300s': it is no file of a worker's steps", path);
    else if (!reserve(out, (size_t)info.st_size + 1))
        st = dp_fail(err, DP_NOMEM, "no memory to read '%.300s'", path);
    while (st == DP_OK && out->size < (size_t)info.st_size) {
        ssize_t n = read(fd, out->at + out->size, (size_t)info.st_size - out->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            st = dp_fail(err, DP_IO, "cannot read '%.300s': %s", path, strerror(errno));
        if (n <= 0)
            break;
        out->size += (size_t)n;
    }
    (void)close(fd);
    return st;
}

static enum dp_status make(const char *path, struct dp_step_log **out, struct dp_error *err)
{
    struct dp_step_log *log = calloc(1, sizeof *log);
    *out = NULL;
    if (!log)
        return dp_fail(err, DP_NOMEM, "no memory for a log of steps");
    log->fd = -1;
    if (snprintf(log->path, sizeof log->path, "%s", path) >= (int)sizeof log->path) {
        free(log);
        return dp_fail(err, DP_ARGUMENT, "path '%.200s...' is too long", path);
    }
    *out = log;
    return DP_OK;
}

static void forget(struct dp_step_log *log)
{
    free(log->text);
    free(log->kept.at);
    free(log->part.at);
    free(log->steps);
    for (int k = 0; k < DP_STEP_NOTES; k++)
        free(log->last[k].at);
}

enum dp_status dp_step_log_read(const char *path, struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err)
{
    struct bytes bytes = {0};
    enum dp_status st = make(path, out, err);
    if (st == DP_OK)
        st = read_file(path, &bytes, err);
    if (st == DP_OK && parse(*out, bytes.at, bytes.size) == 0)
        st = dp_fail(err, DP_DATA, "'%.300s' is no log of a worker's steps", path);
    free(bytes.at);
    if (st == DP_OK)
        *id = (*out)->id;
    else
        dp_step_log_close(out);
    return st;
}

/* It begins with its head. */
static enum dp_status begin(struct dp_step_log *log, struct dp_error *err)
{
    unsigned char head[HEAD_BYTES + 24];
    size_t size = pack_head(&log->id, head);
    if (!write_all(log->fd, head, size)) {
        int why = errno;
        (void)!ftruncate(log->fd, 0);
        return dp_fail(err, why == ENOSPC || why == EDQUOT ? DP_FULL : DP_IO, "cannot write '%.300s': %s",
                       log->path, strerror(why));
    }
    log->size = size;
    return DP_OK;
}

enum dp_status dp_step_log_open(const char *path, const struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err)
{
    struct bytes bytes = {0};
    struct dp_error missing = {0};
    size_t sound = 0;
    enum dp_status st = make(path, out, err), read = st == DP_OK ? read_file(path, &bytes, &missing) : st;
    if (read == DP_OK)
        sound = parse(*out, bytes.at, bytes.size);
    else if (st == DP_OK && read != DP_NOT_FOUND)
        st = dp_fail(err, read, "%s", missing.text);
    struct dp_step_log *log = *out;
    if (st == DP_OK && sound > 0 && seed_of(&log->id) != seed_of(id)) {
        dp_step_log_close(out);
        st = make(path, out, err);
        log = *out;
        sound = 0;
    }
    if (st == DP_OK && sound < bytes.size && sound > 0)
        dp_log(DP_LOG_INFO, "'%s': what is behind byte %zu is cut off or damaged, and left out", path, sound);
    free(bytes.at);
    if (st != DP_OK)
        goto done;
    log->id = *id;
    log->seed = seed_of(id);
    log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0 || ftruncate(log->fd, (off_t)sound) != 0)
        st = dp_fail(err, DP_IO, "cannot write '%.300s': %s", path, strerror(errno));
    log->size = sound;
    log->tidy_at = sound + DEAD_BYTES;
    if (st == DP_OK && sound == 0)
        st = begin(log, err);
done:
    if (st != DP_OK)
        dp_step_log_close(out);
    return st;
}

void dp_step_log_close(struct dp_step_log **log)
{
    struct dp_step_log *l = *log;
    *log = NULL;
    if (!l)
        return;
    if (l->fd >= 0)
        (void)close(l->fd);
    forget(l);
    free(l);
}

const char *dp_step_log_text(const struct dp_step_log *log)
{
    return log->text;
}

struct dp_step_log_plan dp_step_log_plan_of(const struct dp_step_log *log)
{
    return log->plan;
}

void dp_step_log_last(const struct dp_step_log *log, uint32_t *epoch, uint64_t *groups)
{
    *epoch = log->last_epoch;
    *groups = log->last_groups;
}

static bool sum_of(const unsigned char *record, uint32_t epoch, struct dp_step_sum *out)
{
    const unsigned char *from = record + HEAD_BYTES;
    if (dp_load_u32le(record + 8) != SUM || dp_load_u32le(from) != epoch)
        return false;
    *out = (struct dp_step_sum){.groups = dp_load_u64le(from + 8),
                                .examples = dp_load_u64le(from + 16),
                                .loss_sum = get_f64(from + 24),
                                .begun = get_f64(from + 32),
                                .seconds = get_f64(from + 40)};
    return true;
}

struct dp_step_sum dp_step_log_sum(const struct dp_step_log *log, uint32_t epoch)
{
    struct dp_step_sum sum = {0};
    for (size_t at = 0; at < log->kept.size; at += HEAD_BYTES + dp_load_u32le(log->kept.at + at + 12))
        (void)sum_of(log->kept.at + at, epoch, &sum);
    if (sum.groups == 0 && log->part.size > 0)
        (void)sum_of(log->part.at, epoch, &sum);
    return sum;
}

void dp_step_log_sums(const struct dp_step_log *log, struct dp_step_sum *sums, uint32_t epochs)
{
    for (size_t at = 0; at < log->kept.size; at += HEAD_BYTES + dp_load_u32le(log->kept.at + at + 12)) {
        const unsigned char *record = log->kept.at + at;
        uint32_t epoch = dp_load_u32le(record + HEAD_BYTES);
        if (dp_load_u32le(record + 8) == SUM && epoch < epochs)
            (void)sum_of(record, epoch, &sums[epoch]);
    }
}

struct placed {
    struct dp_step step;
    size_t at; /* in the file */
};

static int by_group(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = (x->step.group > y->step.group) - (x->step.group < y->step.group);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

enum dp_status dp_step_log_steps(const struct dp_step_log *log, uint32_t epoch,
                                 bool (*done)(const void *of, uint32_t epoch, uint64_t group), const void *of,
                                 struct dp_step **steps, size_t *count, struct dp_error *err)
{
    uint64_t from = dp_step_log_sum(log, epoch).groups;
    struct placed *placed = calloc(log->steps_len + 1, sizeof *placed);
    size_t n = 0;
    *count = 0;
    *steps = calloc(log->steps_len + 1, sizeof **steps);
    if (!placed || !*steps) {
        free(placed);
        free(*steps);
        *steps = NULL;
        return dp_fail(err, DP_NOMEM, "no memory for the losses of %zu pushes", log->steps_len);
    }
    for (size_t i = 0; i < log->steps_len; i++)
        if (log->steps[i].epoch == epoch && log->steps[i].group >= from &&
            done(of, epoch, log->steps[i].group))
            placed[n++] = (struct placed){.step = log->steps[i], .at = i};
    qsort(placed, n, sizeof *placed, by_group);
    for (size_t i = 0; i < n; i++) /* of a push that was made twice the later one */
        if (i + 1 == n || placed[i + 1].step.group != placed[i].step.group)
            (*steps)[(*count)++] = placed[i].step;
    free(placed);
    return DP_OK;
}

void dp_step_log_visit(const struct dp_step_log *log,
                       void (*visit)(void *context, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                                     size_t size),
                       void *context)
{
    for (int k = -1; k < DP_STEP_NOTES; k++) {
        const struct bytes *in = k < 0 ? &log->kept : &log->last[k];
        for (size_t at = 0, payload; at < in->size; at += HEAD_BYTES + payload) {
            const unsigned char *record = in->at + at, *from = record + HEAD_BYTES;
            payload = dp_load_u32le(record + 12);
            if (dp_load_u32le(record + 8) == NOTE)
                visit(context, (enum dp_step_note)dp_load_u32le(from), dp_load_u32le(from + 4),
                      from + NOTE_BYTES, payload - NOTE_BYTES);
        }
    }
}

enum dp_status dp_step_log_path(const char *prefix, uint32_t worker, char *out, size_t size,
                                struct dp_error *err)
{
    int n = snprintf(out, size, "%s-%" PRIu32 ".log", prefix, worker);
    return n > 0 && (size_t)n < size
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT, "path '%.200s...' (training.steps) is too long", prefix);
}
