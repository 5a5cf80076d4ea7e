#include "worker/loop/step_log_inner.h"

#include "common/base/log.h"
#include "common/env/limits.h"
#include "worker/loop/step_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEAD_BYTES (64u << 10)
#define DEAD_STEPS 65536u
#define FILE_MAX   (UINT64_C(4) << 30)
#define NOTE_STOP  1u /* early stopping's state, of an earlier version */

static bool reserve(struct dp_step_bytes *bytes, size_t more)
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

bool dp_step_log_append(struct dp_step_bytes *bytes, const void *more, size_t size)
{
    if (!reserve(bytes, size))
        return false;
    if (size > 0) /* memcpy takes no NULL */
        memcpy(bytes->at + bytes->size, more, size);
    bytes->size += size;
    return true;
}

/* ---- writing */

static void tell(struct dp_step_log *log, const char *what)
{
    if (!log->told)
        dp_log(DP_LOG_WARN,
               "%s '%s': %s; training continues, but metrics may be missing if it is stopped and resumed",
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

void dp_step_log_rewrite(struct dp_step_log *log, uint32_t epoch, const struct dp_step_bytes *pushes)
{
    char path[PATH_MAX + 8];
    unsigned char head[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_ID];
    struct dp_step_bytes all = {0};
    bool good = dp_step_log_append(&all, head, dp_step_record_put_head(&log->id, head)) &&
                dp_step_log_append(&all, log->kept.at, log->kept.size) &&
                dp_step_log_append(&all, log->totals.at, log->totals.size) &&
                dp_step_log_append(&all, log->part.at, log->part.size);
    size_t before = all.size;
    good = good && dp_step_log_append(&all, pushes->at, pushes->size);
    log->tidy_at = log->size + DEAD_BYTES; /* for the next try, should this one fail */
    (void)snprintf(path, sizeof path, "%s.new", log->path);
    int fd = good ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd >= 0 && write_all(fd, all.at, all.size) && rename(path, log->path) == 0) {
        (void)close(log->fd);
        log->fd = fd;
        log->size = all.size;
        log->tidy_at = all.size * 2 + DEAD_BYTES;
        log->steps_at = before;
        log->steps_epoch = epoch;
    } else if (good) {
        tell(log, "cannot shorten");
        if (fd >= 0)
            (void)close(fd);
        (void)unlink(path);
    }
    free(all.at);
}

/* The records of the epoch's pushes in the file, as far as they are there. A training that is restored into the middle of the epoch
 * needs them although it has ended. */
static void read_steps(const struct dp_step_log *log, uint32_t epoch, struct dp_step_bytes *out)
{
    size_t size = log->steps_epoch == epoch ? (size_t)(log->size - log->steps_at) : 0;
    unsigned char *bytes = size > 0 ? malloc(size) : NULL;
    if (!bytes || pread(log->fd, bytes, size, (off_t)log->steps_at) != (ssize_t)size)
        size = 0;
    for (size_t at = 0; dp_step_record_is_sound(bytes + at, size - at, log->seed);) {
        size_t record = DP_STEP_RECORD_HEAD + dp_step_record_payload(bytes + at);
        if (dp_step_record_kind(bytes + at) == DP_STEP_KIND_STEP)
            (void)dp_step_log_append(out, bytes + at, record);
        at += record;
    }
    free(bytes);
}

void dp_step_log_set_plan(struct dp_step_log *log, const struct dp_step_log_plan *plan, const char *text)
{
    size_t size = strlen(text);
    unsigned char *record = malloc(DP_STEP_RECORD_HEAD + DP_STEP_RECORD_PLAN + size);
    char *copy = strdup(text);
    if (record && copy) {
        dp_store_u32le(record + DP_STEP_RECORD_HEAD, plan->epochs);
        dp_store_u32le(record + DP_STEP_RECORD_HEAD + 4, 0);
        dp_store_u64le(record + DP_STEP_RECORD_HEAD + 8, plan->groups);
        memcpy(record + DP_STEP_RECORD_HEAD + DP_STEP_RECORD_PLAN, text, size);
        size_t all = dp_step_record_seal(record, log->seed, DP_STEP_KIND_PLAN, DP_STEP_RECORD_PLAN + size);
        (void)dp_step_log_append(&log->kept, record, all);
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
    unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_SUM];
    const struct dp_step_recent *oldest = &log->recent[log->recent_len % DP_STEP_BEHIND];
    DP_ASSERT(log->recent_len >= DP_STEP_BEHIND);
    size_t size = dp_step_record_put_sum(log->recent_epoch, false, &oldest->before, log->seed, record);
    log->part.size = 0;
    (void)dp_step_log_append(&log->part, record, size);
    struct dp_step_bytes pushes = {0};
    for (uint64_t i = log->recent_len - DP_STEP_BEHIND; i < log->recent_len; i++) {
        unsigned char step[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_STEP];
        (void)dp_step_log_append(
            &pushes, step, dp_step_record_put_step(&log->recent[i % DP_STEP_BEHIND].step, log->seed, step));
    }
    dp_step_log_rewrite(log, log->recent_epoch, &pushes);
    free(pushes.at);
    log->since = DP_STEP_BEHIND;
}

/* A sum of no pushes: it says when the epoch began, should the process end before the record of the epoch's end. */
static void note_begin(struct dp_step_log *log, uint32_t epoch, const struct dp_step_sum *sum)
{
    unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_SUM];
    size_t size = dp_step_record_put_sum(epoch, false, sum, log->seed, record);
    log->part.size = 0;
    (void)dp_step_log_append(&log->part, record, size);
    put(log, record, size);
}

void dp_step_log_add(struct dp_step_log *log, const struct dp_step *step, const struct dp_step_sum *sum)
{
    unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_STEP];
    bool begins = step->epoch != log->steps_epoch || log->steps_at == 0;
    if (begins) {
        log->steps_epoch = step->epoch;
        log->steps_at = log->size;
    }
    put(log, record, dp_step_record_put_step(step, log->seed, record));
    if (begins && sum->groups == 0)
        note_begin(log, step->epoch, sum);
    if (step->epoch != log->recent_epoch || sum->groups != step->group)
        log->recent_len = log->since =
            0; /* a sum is of all pushes before: not where some are found later on */
    log->recent_epoch = step->epoch;
    if (sum->groups == step->group)
        log->recent[log->recent_len++ % DP_STEP_BEHIND] =
            (struct dp_step_recent){.step = *step, .before = *sum};
    if (++log->since >= DEAD_STEPS && log->recent_len >= DP_STEP_BEHIND)
        sum_up(log);
}

void dp_step_log_epoch(struct dp_step_log *log, uint32_t epoch, const struct dp_step_sum *sum)
{
    unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_SUM];
    size_t size = dp_step_record_put_sum(epoch, true, sum, log->seed, record);
    (void)dp_step_log_append(&log->kept, record, size);
    put(log, record, size);
    log->part.size = 0;
    log->recent_len = log->since = 0;
    if (log->size > log->tidy_at) {
        struct dp_step_bytes pushes = {0};
        read_steps(log, epoch, &pushes);
        dp_step_log_rewrite(log, epoch, &pushes);
        free(pushes.at);
    }
}

/* Keeps the record of a note. */
static void keep_note(struct dp_step_log *log, enum dp_step_note kind, const unsigned char *record,
                      size_t size)
{
    if (kind == DP_STEP_TOTALS)
        log->totals.size = 0;
    (void)dp_step_log_append(kind == DP_STEP_TOTALS ? &log->totals : &log->kept, record, size);
}

void dp_step_log_note(struct dp_step_log *log, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                      size_t size)
{
    unsigned char *record = size <= DP_STEP_RECORD_MAX - DP_STEP_RECORD_NOTE
                                ? malloc(DP_STEP_RECORD_HEAD + DP_STEP_RECORD_NOTE + size)
                                : NULL;
    if (!record)
        return;
    dp_store_u32le(record + DP_STEP_RECORD_HEAD, kind);
    dp_store_u32le(record + DP_STEP_RECORD_HEAD + 4, epoch);
    if (size)
        memcpy(record + DP_STEP_RECORD_HEAD + DP_STEP_RECORD_NOTE, bytes, size);
    size_t all = dp_step_record_seal(record, log->seed, DP_STEP_KIND_NOTE, DP_STEP_RECORD_NOTE + size);
    keep_note(log, kind, record, all);
    put(log, record, all);
    free(record);
}

/* ---- reading */

static void learn_step(struct dp_step_log *log, const unsigned char *record, size_t at)
{
    struct dp_step step = dp_step_record_get_step(record);
    if (step.epoch != log->steps_epoch || log->steps_at == 0) {
        log->steps_epoch = step.epoch;
        log->steps_at = at;
    }
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
    const unsigned char *from = record + DP_STEP_RECORD_HEAD;
    uint32_t epoch = dp_load_u32le(from);
    bool whole = dp_load_u32le(from + 4) & 1;
    if (whole) {
        (void)dp_step_log_append(&log->kept, record, DP_STEP_RECORD_HEAD + DP_STEP_RECORD_SUM);
        log->part.size = 0;
    } else {
        log->part.size = 0;
        (void)dp_step_log_append(&log->part, record, DP_STEP_RECORD_HEAD + DP_STEP_RECORD_SUM);
    }
    if (epoch > log->last_epoch || (epoch == log->last_epoch && dp_load_u64le(from + 8) > log->last_groups)) {
        log->last_epoch = epoch;
        log->last_groups = dp_load_u64le(from + 8);
    }
}

static void learn_plan(struct dp_step_log *log, const unsigned char *record, size_t payload)
{
    const unsigned char *from = record + DP_STEP_RECORD_HEAD;
    char *text = strndup((const char *)from + DP_STEP_RECORD_PLAN, payload - DP_STEP_RECORD_PLAN);
    if (!text)
        return;
    free(log->text);
    log->text = text;
    log->plan = (struct dp_step_log_plan){.epochs = dp_load_u32le(from), .groups = dp_load_u64le(from + 8)};
    (void)dp_step_log_append(&log->kept, record, DP_STEP_RECORD_HEAD + payload);
}

/* false: it is no record of this log. */
static bool learn(struct dp_step_log *log, const unsigned char *record, size_t at, size_t payload)
{
    enum dp_step_kind kind = dp_step_record_kind(record);
    if (kind == DP_STEP_KIND_STEP && payload == DP_STEP_RECORD_STEP) {
        learn_step(log, record, at);
    } else if (kind == DP_STEP_KIND_SUM && payload == DP_STEP_RECORD_SUM) {
        learn_sum(log, record);
    } else if (kind == DP_STEP_KIND_PLAN && payload >= DP_STEP_RECORD_PLAN) {
        learn_plan(log, record, payload);
    } else if (kind == DP_STEP_KIND_NOTE && payload >= DP_STEP_RECORD_NOTE) {
        uint32_t note = dp_load_u32le(record + DP_STEP_RECORD_HEAD);
        if (note > DP_STEP_VALIDATION)
            return false;
        if (note != NOTE_STOP)
            keep_note(log, (enum dp_step_note)note, record, DP_STEP_RECORD_HEAD + payload);
    } else {
        return false;
    }
    return true;
}

/* Bytes of it that are this log's; 0: it has no head. */
static size_t parse(struct dp_step_log *log, const unsigned char *bytes, size_t size)
{
    if (!dp_step_record_get_head(bytes, size, &log->id))
        return 0;
    log->seed = dp_step_record_seed(&log->id);
    size_t at = DP_STEP_RECORD_HEAD + DP_STEP_RECORD_ID;
    while (dp_step_record_is_sound(bytes + at, size - at, log->seed)) {
        size_t payload = dp_step_record_payload(bytes + at);
        if (!learn(log, bytes + at, at, payload))
            break;
        at += DP_STEP_RECORD_HEAD + payload;
    }
    return at;
}

static enum dp_status read_file(const char *path, struct dp_step_bytes *out, struct dp_error *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "cannot read '%.300s': %s", path,
                       strerror(errno));
    enum dp_status st = DP_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size > FILE_MAX)
        st = dp_fail(err, DP_IO, "cannot read '%.300s': it is not a step log", path);
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
        return dp_fail(err, DP_NOMEM, "no memory for a step log");
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
    free(log->totals.at);
    free(log->part.at);
    free(log->steps);
}

enum dp_status dp_step_log_read(const char *path, struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err)
{
    struct dp_step_bytes bytes = {0};
    enum dp_status st = make(path, out, err);
    if (st == DP_OK)
        st = read_file(path, &bytes, err);
    if (st == DP_OK && parse(*out, bytes.at, bytes.size) == 0)
        st = dp_fail(err, DP_DATA, "'%.300s' is not a step log of a worker", path);
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
    unsigned char head[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_ID];
    size_t size = dp_step_record_put_head(&log->id, head);
    if (!write_all(log->fd, head, size)) {
        int why = errno;
        (void)!ftruncate(log->fd, 0);
        return dp_fail(err, dp_limits_full(why) ? DP_FULL : DP_IO, "cannot write '%.300s': %s%s", log->path,
                       strerror(why), dp_limits_remedy(why));
    }
    log->size = size;
    return DP_OK;
}

enum dp_status dp_step_log_open(const char *path, const struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err)
{
    struct dp_step_bytes bytes = {0};
    struct dp_error missing = {0};
    size_t sound = 0;
    enum dp_status st = make(path, out, err), read = st == DP_OK ? read_file(path, &bytes, &missing) : st;
    if (read == DP_OK)
        sound = parse(*out, bytes.at, bytes.size);
    else if (st == DP_OK && read != DP_NOT_FOUND)
        st = dp_fail(err, read, "%s", missing.text);
    struct dp_step_log *log = *out;
    if (st == DP_OK && sound > 0 && dp_step_record_seed(&log->id) != dp_step_record_seed(id)) {
        dp_step_log_close(out);
        st = make(path, out, err);
        log = *out;
        sound = 0;
    }
    if (st == DP_OK && sound < bytes.size && sound > 0)
        dp_log(DP_LOG_INFO, "'%s': the records after byte %zu are truncated or damaged, and ignored", path,
               sound);
    free(bytes.at);
    if (st != DP_OK)
        goto done;
    log->id = *id;
    log->seed = dp_step_record_seed(id);
    log->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
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
