#include "server/run_end.h"

#include "common/base/deadline.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/client/downpour.h"
#include "server/control/register_names.h"
#include "server/control/register_values.h"
#include "server/store/store_id.h"

#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define TRY_MS     1000u /* one question to the first server */
#define WATCH_MS   5000u /* the register keeps a question so long */
#define LOOK_MS    50u
#define ALONE_MS   2000u  /* no worker leaves: they were not asked to */
#define SILENT_MS  3000u  /* a worker was killed: it would put a note each half second */
#define SAME_MS    1000u  /* two signals within that are one */
#define SAY_MS     10000u /* between lines on what it waits for */
#define READING    10u    /* times the timeout, as the workers wait for one that reads */
#define CLOSED_MS  30000u /* a first server that is killed now is started again */
#define SAVE_MS    60000u /* the same, of another server: the last checkpoint is tried again */
#define GIVE_UP_MS 3000u  /* which it takes to give a checkpoint up */
#define NAME_BYTES 96
#define FIRST_NOTE "server/0."
#define STOPPING   "stopping"
#define SAVED      "saved"

enum run_end_mode { WATCHES, LEAVES, STOPS };

struct seen_worker {
    bool left;     /* it needs no server */
    bool finished; /* and does not come back */
    bool noted;    /* it has put a note */
    bool reads;
    bool failed;       /* ended, and would fail again */
    bool kept;         /* the register says that it has finished */
    uint64_t hash;     /* of its note */
    uint64_t since_ms; /* it is the same */
};

struct dp_run_end {
    struct dp_run_end_options options;
    pthread_t thread;
    bool joined;
    atomic_int mode;
    atomic_bool over;
    struct dp_client *client;
    uint64_t version;  /* of the value "runs" */
    uint32_t last_run; /* as it was read; 0: none */
    bool last_done;
    bool was_open;    /* this process has seen the run before its end */
    uint64_t done_ms; /* when it saw the end; 0: not yet */
    uint64_t said_ms;
    uint64_t heard_ms;           /* the first server answered last */
    uint64_t asked_ms, until_ms; /* of `leave` */
    bool hurried;                /* by a further signal */
    bool all_left;               /* the workers */
    bool failed;                 /* one would fail again: */
    char why[DP_REASON_MAX + 1];
    bool saved;       /* the last checkpoint is made, or cannot be */
    bool alone;       /* it ends without the first server */
    atomic_bool lost; /* the first server */
    uint32_t closed;  /* other servers, by the register */
    struct seen_worker worker[];
};

/* A launcher that signals all processes, and node that passes the signal on, come within moments: one. */
static bool is_hurried(struct dp_run_end *end)
{
    struct pollfd signal = {.fd = end->options.signal_fd, .events = POLLIN};
    struct signalfd_siginfo info;
    if (!end->hurried && poll(&signal, 1, 0) > 0 && read(signal.fd, &info, sizeof info) == sizeof info)
        end->hurried = dp_now_ms() - end->asked_ms >= SAME_MS;
    return end->hurried;
}

/* The time is over, or a further signal asks for the end at once. */
static bool gives_up(void *context)
{
    struct dp_run_end *end = context;
    const int mode = atomic_load(&end->mode);
    return mode == STOPS || (mode == LEAVES && (dp_now_ms() >= end->until_ms || is_hurried(end)));
}

static bool gives_up_to_leave(void *context)
{
    const struct dp_run_end *end = context;
    return atomic_load(&end->mode) != WATCHES;
}

static enum dp_status connect_to(struct dp_run_end *end, bool (*gives_up_if)(void *context))
{
    char control[DP_HOST_MAX + 32];
    dp_cluster_control_endpoint(end->options.cluster, 0, control, sizeof control);
    const struct dp_client_options options = {.name = "server",
                                              .cluster = end->options.cluster->id,
                                              .control = control,
                                              .gives_up = gives_up_if,
                                              .gives_up_context = end};
    return end->client ? DP_OK : dp_client_open(&options, &end->client, NULL);
}

static void pause_ms(uint32_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&pause, NULL);
}

/* The run of this cluster file; 0: none has begun. */
static uint32_t run_of(const struct dp_run_end *end)
{
    uint32_t given = end->options.cluster->training.run;
    return given > 0 ? given : end->last_run;
}

/* Complete, or over for all. */
static bool is_done(const struct dp_run_end *end)
{
    if (end->failed)
        return true;
    return run_of(end) > 0 &&
           (end->last_run > run_of(end) || (end->last_run == run_of(end) && end->last_done));
}

/* ---- the workers' notes */

struct note_seen {
    const char *name;
    struct seen_worker *worker;
};

static void see_note(void *context, const char *name, const void *bytes, size_t size)
{
    const struct note_seen *seen = context;
    struct seen_worker *worker = seen->worker;
    uint64_t hash = dp_hash_bytes(DP_HASH_BEGIN, bytes, size);
    if (strcmp(name, seen->name) != 0)
        return;
    if (!worker->noted || hash != worker->hash)
        worker->since_ms = dp_now_ms();
    worker->noted = true;
    worker->hash = hash;
    json_t *root = json_loadb(bytes, size, 0, NULL);
    const char *state = json_string_value(json_object_get(root, "state"));
    worker->left = json_is_true(json_object_get(root, "left"));
    worker->finished = worker->left && state && strcmp(state, "done") == 0;
    worker->failed = worker->left && json_integer_value(json_object_get(root, "code")) == DP_EXIT_FAILED;
    worker->reads = state && strcmp(state, "reading") == 0;
    json_decref(root);
}

/* Of those that had not finished. How many have left by now. */
static enum dp_status look_at_workers(struct dp_run_end *end, uint32_t *left)
{
    enum dp_status st = DP_OK;
    *left = 0;
    for (uint32_t w = 0; st == DP_OK && w < end->options.cluster->training.workers; w++) {
        char name[NAME_BYTES];
        struct note_seen seen = {.name = name, .worker = &end->worker[w]};
        (void)snprintf(name, sizeof name, "run/%" PRIu32 "/progress/%" PRIu32 ".", run_of(end), w);
        if (!end->worker[w].finished)
            st = dp_client_notes(end->client, name, see_note, &seen, TRY_MS, NULL);
        *left += end->worker[w].left;
    }
    return st;
}

static bool is_awaited(const struct dp_run_end *end, const struct seen_worker *worker, uint64_t now)
{
    uint64_t timeout_ms = end->options.cluster->training.timeout_ms;
    if (worker->finished || (end->failed && worker->failed))
        return false;
    if (!worker->noted)
        return now - end->done_ms < (end->was_open || end->failed ? timeout_ms : DP_RUN_END_LATE_MS);
    uint64_t since = worker->since_ms > end->done_ms ? worker->since_ms : end->done_ms;
    return now - since < timeout_ms * (worker->reads ? READING : 1);
}

/* Whether a worker still needs this server; says which, now and then. */
static bool awaits_worker(struct dp_run_end *end)
{
    uint64_t now = dp_now_ms();
    uint32_t workers = end->options.cluster->training.workers, w = 0;
    while (w < workers && !is_awaited(end, &end->worker[w], now))
        w++;
    if (w < workers && now - end->said_ms >= SAY_MS) {
        dp_log(DP_LOG_INFO, "run %" PRIu32 " is done: waiting for worker %" PRIu32 " to leave", run_of(end),
               w);
        end->said_ms = now;
    }
    return w < workers;
}

/* ---- what the register keeps */

static json_t *list_of(json_t *root, const char *key)
{
    json_t *list = json_object_get(root, key);
    if (!json_is_array(list) && json_object_set_new(root, key, json_array()) == 0)
        list = json_object_get(root, key);
    return list;
}

static bool has(const json_t *list, uint32_t number)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) == (json_int_t)number)
            return true;
    return false;
}

/* Of this run, and of this start of the cluster. NULL: no memory. */
static json_t *take_kept(struct dp_run_end *end, const struct dp_register_value *value)
{
    json_t *root = json_loadb(value->bytes ? value->bytes : "", value->size, 0, NULL);
    if (json_integer_value(json_object_get(root, "run")) != (json_int_t)run_of(end)) {
        json_t *of_run =
            json_pack("{s:I,s:O*}", "run", (json_int_t)run_of(end), "start", json_object_get(root, "start"));
        json_decref(root);
        root = of_run;
    }
    const json_t *left = list_of(root, "left");
    for (size_t i = 0; i < json_array_size(left); i++) {
        json_int_t w = json_integer_value(json_array_get(left, i));
        if (w >= 0 && w < (json_int_t)end->options.cluster->training.workers)
            end->worker[w].left = end->worker[w].finished = end->worker[w].kept = true;
    }
    end->closed = (uint32_t)json_array_size(list_of(root, "closed"));
    return root;
}

/* Adds what this server knows: a first server that is started again then knows it, too. DP_AGAIN: another
 * server has changed the value. */
static enum dp_status keep(struct dp_run_end *end, bool closed)
{
    struct dp_register_value value = {0};
    bool news = false, won = true;
    enum dp_status st = connect_to(end, gives_up);
    if (st == DP_OK)
        st = dp_client_register_get(end->client, DP_CONTROL_ENDED_NAME, 0, 0, TRY_MS, &value, NULL);
    json_t *root = st == DP_OK ? take_kept(end, &value) : NULL;
    for (uint32_t w = 0; root && w < end->options.cluster->training.workers; w++)
        if (end->worker[w].finished && !end->worker[w].kept)
            news |= json_array_append_new(list_of(root, "left"), json_integer(w)) == 0;
    if (root && closed && !has(list_of(root, "closed"), end->options.server))
        news |= json_array_append_new(list_of(root, "closed"), json_integer(end->options.server)) == 0;
    char *text = news ? json_dumps(root, JSON_COMPACT) : NULL;
    if (text)
        st = dp_client_register_set(end->client, DP_CONTROL_ENDED_NAME, value.version, text, strlen(text),
                                    TRY_MS, &won, NULL, NULL);
    free(text);
    json_decref(root);
    dp_register_value_clear(&value);
    return st == DP_OK && !won ? DP_AGAIN : st;
}

static void put_closed(struct dp_run_end *end)
{
    const uint64_t begun_ms = dp_now_ms();
    const uint32_t limit_ms = end->alone ? 2 * TRY_MS : CLOSED_MS;
    enum dp_status st;
    while ((st = keep(end, true)) != DP_OK && dp_now_ms() - begun_ms < limit_ms)
        pause_ms(LOOK_MS);
    if (st != DP_OK && !end->alone)
        dp_log(DP_LOG_WARN, "server 0 does not answer, and does not know that this server has closed");
}

/* ---- the other servers */

static bool awaits_server(struct dp_run_end *end)
{
    uint32_t others = end->options.cluster->server_count - 1;
    uint64_t now = dp_now_ms();
    if (end->options.server != 0 || end->closed >= others)
        return false;
    if (now - end->done_ms >= DP_RUN_END_CLOSE_MS) {
        dp_log(DP_LOG_WARN, "run %" PRIu32 " is done, and %" PRIu32 " servers have not closed their stores",
               run_of(end), others - end->closed);
        return false;
    }
    if (now - end->said_ms >= SAY_MS) {
        dp_log(DP_LOG_INFO, "run %" PRIu32 " is done: waiting for %" PRIu32 " servers to close their stores",
               run_of(end), others - end->closed);
        end->said_ms = now;
    }
    return true;
}

/* ---- the last checkpoint */

static void put_state(struct dp_run_end *end, const char *state)
{
    if (connect_to(end, gives_up) == DP_OK)
        (void)dp_client_note_put(end->client, FIRST_NOTE, state, strlen(state), TRY_MS, NULL);
}

static void see_state(void *context, const char *name, const void *bytes, size_t size)
{
    const bool saved = size == strlen(SAVED) && memcmp(bytes, SAVED, size) == 0;
    (void)name;
    *(const char **)context = saved ? SAVED : STOPPING;
}

/* What the first server says; NULL: nothing. */
static enum dp_status read_state(struct dp_run_end *end, const char **state)
{
    *state = NULL;
    enum dp_status st = connect_to(end, gives_up);
    return st == DP_OK ? dp_client_notes(end->client, FIRST_NOTE, see_state, state, TRY_MS, NULL) : st;
}

/* At the end of the run. */
static bool awaits_checkpoint(struct dp_run_end *end)
{
    const char *state = NULL;
    if (!end->options.save || end->saved)
        return false;
    if (end->options.server == 0) {
        end->options.save(end->options.context, SAVE_MS, gives_up_to_leave, end);
        end->saved = !gives_up_to_leave(end);
        if (end->saved)
            put_state(end, SAVED);
    } else if (read_state(end, &state) == DP_OK)
        end->saved = state && strcmp(state, SAVED) == 0;
    return !end->saved;
}

/* At a stop, on another server: the first one is to stop, too, if it says so soon. */
static void await_checkpoint(struct dp_run_end *end, uint64_t begun_ms)
{
    const char *state = NULL;
    while (!gives_up(end) && read_state(end, &state) == DP_OK && (!state || strcmp(state, SAVED) != 0) &&
           (state || dp_now_ms() - begun_ms < ALONE_MS))
        pause_ms(LOOK_MS);
}

/* ---- a worker that would fail again */

static void look_for_failure(struct dp_run_end *end)
{
    struct dp_register_value value = {0};
    if (end->failed || run_of(end) == 0 ||
        dp_client_register_get(end->client, DP_CONTROL_FAILED_NAME, 0, 0, TRY_MS, &value, NULL) != DP_OK)
        return;
    json_t *root = value.bytes ? json_loadb(value.bytes, value.size, 0, NULL) : NULL;
    const char *why = json_string_value(json_object_get(root, "why"));
    end->failed = json_integer_value(json_object_get(root, "run")) == (json_int_t)run_of(end);
    if (end->failed) {
        (void)snprintf(end->why, sizeof end->why,
                       "worker %" JSON_INTEGER_FORMAT " ended run %" PRIu32 " for all: %s",
                       json_integer_value(json_object_get(root, "worker")), run_of(end),
                       why ? why : "see its own message");
        dp_log(DP_LOG_WARN, "%s", end->why);
    }
    json_decref(root);
    dp_register_value_clear(&value);
}

/* ---- the thread */

/* Reads the value "runs", once it has changed or after wait_ms. */
static enum dp_status read_last(struct dp_run_end *end, uint32_t wait_ms, bool (*gives_up_if)(void *context))
{
    struct dp_register_value value = {0};
    uint32_t run = run_of(end);
    enum dp_status st = connect_to(end, gives_up_if);
    if (st == DP_OK)
        st = dp_client_register_get(end->client, "runs", end->version, wait_ms, TRY_MS, &value, NULL);
    if (st == DP_OK)
        end->heard_ms = dp_now_ms();
    if (st == DP_OK && value.version != end->version) {
        end->version = value.version;
        end->last_run = dp_control_values_last_run(value.bytes, value.size, &end->last_done);
    }
    dp_register_value_clear(&value);
    if (run_of(end) != run)
        end->all_left = end->saved = end->failed = false;
    if (run_of(end) != run)
        memset(end->worker, 0, end->options.cluster->training.workers * sizeof end->worker[0]);
    return st;
}

static bool ends(struct dp_run_end *end)
{
    uint32_t left;
    if (!is_done(end)) {
        end->was_open = true;
        end->done_ms = 0;
        return false;
    }
    end->done_ms = end->done_ms ? end->done_ms : dp_now_ms();
    if (look_at_workers(end, &left) != DP_OK)
        return false;
    (void)keep(end, false);
    if (awaits_worker(end))
        return false;
    end->all_left = true;
    return !awaits_checkpoint(end) && !awaits_server(end);
}

/* All workers have left, and the first server is lost: it needs this one no longer. */
static bool ends_alone(struct dp_run_end *end)
{
    uint64_t silent_ms = dp_now_ms() - end->heard_ms;
    if (!end->all_left || end->options.server == 0 || silent_ms < end->options.cluster->training.timeout_ms)
        return false;
    dp_log(DP_LOG_WARN,
           "run %" PRIu32 " is done, and server 0 has not answered for %" PRIu64
           " s: this server closes without it",
           run_of(end), silent_ms / 1000);
    end->alone = true;
    return true;
}

static bool is_lost(const struct dp_run_end *end)
{
    uint64_t limit_ms = end->options.cluster->training.timeout_ms * (uint64_t)DP_RUN_END_LOST;
    return end->options.server != 0 && dp_now_ms() - end->heard_ms >= limit_ms;
}

/* Until it is over, or main wants something else. */
static void watch(struct dp_run_end *end)
{
    bool first = true;
    while (atomic_load(&end->mode) == WATCHES) {
        bool done = is_done(end);
        enum dp_status st = read_last(end, done || first ? 0 : WATCH_MS, gives_up_to_leave);
        first = first && st != DP_OK;
        if (st == DP_OK)
            look_for_failure(end);
        if (st == DP_OK ? ends(end) : ends_alone(end)) {
            atomic_store(&end->over, true);
            end->options.ended(end->options.context);
            return;
        }
        if (st != DP_OK && is_lost(end)) {
            atomic_store(&end->lost, true);
            end->options.ended(end->options.context);
            return;
        }
        if (st != DP_OK || done)
            pause_ms(LOOK_MS);
    }
}

static void await_workers(struct dp_run_end *end, uint64_t begun_ms)
{
    uint32_t at_first = 0, left = 0;
    bool first = true;
    /* A first server that does not answer has closed, after the workers left; or it serves none of them. */
    while (!gives_up(end) && read_last(end, 0, gives_up) == DP_OK && run_of(end) > 0 &&
           look_at_workers(end, &left) == DP_OK) {
        bool some = false;
        for (uint32_t w = 0; w < end->options.cluster->training.workers; w++)
            some = some || (end->worker[w].noted && !end->worker[w].left &&
                            dp_now_ms() - end->worker[w].since_ms < SILENT_MS);
        at_first = first ? left : at_first;
        first = false;
        if (!some || (left == at_first && dp_now_ms() - begun_ms >= ALONE_MS))
            return;
        pause_ms(LOOK_MS);
    }
}

static void leave(struct dp_run_end *end)
{
    const uint64_t begun_ms = dp_now_ms();
    const bool saves = end->options.save != NULL, is_first = end->options.server == 0;
    end->asked_ms = begun_ms;
    end->until_ms = begun_ms + DP_RUN_END_LEAVE_MS;
    dp_client_close(&end->client);
    if (saves && is_first)
        put_state(end, STOPPING);
    if (end->options.until_done)
        await_workers(end, begun_ms);
    end->until_ms -= saves && is_first ? GIVE_UP_MS : 0;
    if (saves && !is_first)
        await_checkpoint(end, begun_ms);
    if (!saves || !is_first || gives_up(end))
        return;
    end->options.save(end->options.context, 0, gives_up, end);
    put_state(end, SAVED);
}

static void *main_of(void *context)
{
    struct dp_run_end *end = context;
    watch(end);
    if (atomic_load(&end->mode) == LEAVES)
        leave(end);
    return NULL;
}

enum dp_status dp_run_end_start(const struct dp_run_end_options *options, struct dp_run_end **out,
                                struct dp_error *err)
{
    struct dp_run_end *end =
        calloc(1, sizeof *end + options->cluster->training.workers * sizeof end->worker[0]);
    *out = NULL;
    if (!end)
        return dp_fail(err, DP_NOMEM, "waiting for the end of the run");
    end->options = *options;
    end->said_ms = end->heard_ms = dp_now_ms();
    end->joined = !options->until_done;
    if (options->until_done && pthread_create(&end->thread, NULL, main_of, end) != 0) {
        free(end);
        return dp_fail(err, DP_NOMEM, "starting the thread that waits for the end of the run");
    }
    *out = end;
    return DP_OK;
}

bool dp_run_end_is_over(const struct dp_run_end *end)
{
    return end && atomic_load(&end->over);
}

enum dp_status dp_run_end_check(const struct dp_run_end *end, struct dp_error *err)
{
    if (end && atomic_load(&end->over) && end->failed)
        return dp_fail(err, DP_DATA, "%s", end->why);
    if (!end || !atomic_load(&end->lost))
        return DP_OK;
    return dp_fail(err, DP_UNAVAILABLE,
                   "server 0 has not answered for %" PRIu64
                   " s (%u times training.timeout_ms): this server closes; start it again once server 0 is "
                   "back",
                   (uint64_t)end->options.cluster->training.timeout_ms * DP_RUN_END_LOST / 1000,
                   DP_RUN_END_LOST);
}

static enum dp_status put(struct dp_control_register *values, const char *name, const char *text, bool is_new,
                          struct dp_error *err)
{
    struct dp_control_register_entry entry, now;
    struct dp_control_register_change change = {.name = name, .bytes = text, .size = strlen(text)};
    enum dp_status st = dp_control_register_get(values, name, &entry, err);
    change.expected = entry.version;
    if (st != DP_OK || (!is_new && entry.version == 0) ||
        (entry.size == change.size && memcmp(entry.bytes, text, change.size) == 0))
        return st;
    dp_store_id_draw(&change.nonce);
    return dp_control_register_set(values, &change, &now, err);
}

static bool is_of_start(struct dp_control_register *values, const char *start)
{
    struct dp_control_register_entry entry;
    json_t *root = dp_control_register_get(values, DP_CONTROL_ENDED_NAME, &entry, NULL) == DP_OK
                       ? json_loadb((const char *)entry.bytes, entry.size, 0, NULL)
                       : NULL;
    const char *was = json_string_value(json_object_get(root, "start"));
    const bool same = was && strcmp(was, start) == 0;
    json_decref(root);
    return same;
}

enum dp_status dp_run_end_prepare(struct dp_control_register *values, bool until_done, const char *start,
                                  struct dp_error *err)
{
    char ended[64] = "{}";
    if (start && is_of_start(values, start))
        return DP_OK;
    if (start)
        (void)snprintf(ended, sizeof ended, "{\"start\":\"%s\"}", start);
    /* Last, as it says that this start has cleared both. */
    enum dp_status st = put(values, DP_CONTROL_FAILED_NAME, until_done ? "{}" : "null", until_done, err);
    return st == DP_OK ? put(values, DP_CONTROL_ENDED_NAME, ended, start != NULL, err) : st;
}

static void join(struct dp_run_end *end)
{
    if (!end->joined)
        DP_ASSERT(pthread_join(end->thread, NULL) == 0);
    end->joined = true;
}

void dp_run_end_leave(struct dp_run_end *end)
{
    atomic_store(&end->mode, LEAVES);
    join(end);
    if (!end->options.until_done)
        leave(end);
}

void dp_run_end_stop(struct dp_run_end **end, bool closed)
{
    struct dp_run_end *e = *end;
    if (!e)
        return;
    *end = NULL;
    int mode = WATCHES;
    (void)atomic_compare_exchange_strong(&e->mode, &mode, STOPS);
    join(e);
    dp_client_close(&e->client);
    if (closed && atomic_load(&e->over) && e->options.server != 0) {
        atomic_store(&e->mode, WATCHES);
        put_closed(e);
    }
    dp_client_close(&e->client);
    free(e);
}
