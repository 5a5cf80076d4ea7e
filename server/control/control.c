#include "server/control/control.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/env/awake.h"
#include "common/env/clock.h"
#include "common/env/read_only_disk.h"
#include "server/control/board.h"
#include "server/control/generation.h"
#include "server/control/heartbeats.h"
#include "server/control/leases.h"
#include "server/control/register_file.h"
#include "server/control/register_service.h"
#include "server/control/register_values.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#define WAIT_MS 1000u
#define MS_NS   UINT64_C(1000000)
/* Bound on unprocessed requests, and on replies that peers do not read: several full boards each. */
#define WAITING_MAX     ((uint64_t)4 * DP_BOARD_BYTES_MAX)
#define LAST_RUN        "run/0/"
#define KEPT_BYTES_MAX  (DP_REGISTER_BYTES_MAX / 2)
#define KEPT_VALUES_MAX (DP_REGISTER_VALUES_MAX / 2)
#define RECEIVE_MAX     64u /* messages between two looks at `stop`: a flood must not delay it */

struct dp_control {
    struct dp_control_options options;
    char first_server[320], endpoint[320];
    struct dp_listener *listener;
    struct dp_board *board; /* changed under board_lock; the thread itself reads it without */
    pthread_mutex_t board_lock;
    _Atomic uint64_t round_ns; /* when the thread last came round */
    struct dp_leases *leases;
    struct dp_disk disk; /* the register's; without functions: this server has no register */
    int register_lock;   /* locked descriptor of its directory; -1: none */
    struct dp_control_register *values;
    struct dp_control_register_service *service;
    struct dp_control_heartbeats *heartbeats; /* NULL: not the first server */
    struct dp_control_generation generation;  /* the thread's */
    struct dp_clock clock, wall;
    struct dp_awake awake; /* the thread's, for heartbeats and leases */
    pthread_t thread;
    int wake_fd;
    atomic_bool stop;
    /* The handshake of start. */
    pthread_mutex_t lock;
    pthread_cond_t started_changed;
    bool started;
    enum dp_status started_status;
    struct dp_error started_error;
    bool is_found; /* under the lock, as what follows */
    struct dp_control_generation found;
};

static void send_reply(void *context, const struct dp_peer *to, struct dp_reply *reply,
                       struct dp_frame *frames, uint32_t frame_count)
{
    struct dp_control *control = context;
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    reply->cluster = control->options.cluster;
    reply->generation = control->generation.number;
    reply->history = control->generation.history;
    if (dp_reply_encode(reply, frames, frame_count, &message, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "control: a reply was dropped: %s", err.text);
    else
        dp_listener_send(control->listener, to, &message);
}

static void answer(struct dp_control *control, const struct dp_peer *to, const struct dp_request *request,
                   struct dp_reply *reply, struct dp_frame *frames, uint32_t frame_count)
{
    reply->id = request->id;
    reply->session = request->session;
    send_reply(control, to, reply, frames, frame_count);
}

/* "run/0/progress/" asks for the last run, whose number the register has. */
static const char *prefix_of(const struct dp_control *control, const char *name,
                             char prefix[DP_NOTE_NAME_MAX + 32])
{
    struct dp_control_register_entry last;
    uint32_t run = 0;
    if (strncmp(name, LAST_RUN, strlen(LAST_RUN)) != 0)
        return name;
    if (control->values && dp_control_register_get(control->values, "runs", &last, NULL) == DP_OK)
        run = dp_control_values_last_run(last.bytes, last.size, NULL);
    (void)snprintf(prefix, DP_NOTE_NAME_MAX + 32, "run/%" PRIu32 "/%s", run, name + strlen(LAST_RUN));
    return prefix;
}

static enum dp_status get_notes(struct dp_control *control, const struct dp_peer *to,
                                const struct dp_request *request, struct dp_error *err)
{
    const struct dp_board_note *note;
    char prefix[DP_NOTE_NAME_MAX + 32];
    uint32_t n = dp_board_find(control->board, prefix_of(control, request->name, prefix), &note);
    for (; n > 0 && strcmp(note->name, request->after) <= 0; n--)
        note++;
    n = n < DP_NOTES_MAX ? n : DP_NOTES_MAX - 1; /* the client asks for those after them */
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += note[i].size;
    if (bytes > 0 && !dp_listener_would_send(control->listener, to, bytes))
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                            "peers have not read too many earlier replies");
    struct dp_frame frames[DP_NOTES_MAX];
    char(*names)[DP_NOTE_NAME_MAX + 1] = calloc(n + 1, sizeof *names);
    uint64_t *ages = calloc(n + 1, sizeof *ages), now_ns = dp_clock_ns(&control->clock);
    if (!names || !ages) {
        free(names);
        free(ages);
        return dp_fail(err, DP_NOMEM, "no memory for the names of %" PRIu32 " notes", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s", note[i].name);
        ages[i] = (now_ns - note[i].put_ns) / MS_NS;
        frames[i] = dp_frame_copy(note[i].bytes, note[i].size);
        if (!frames[i].data) {
            while (i > 0)
                dp_frame_release(&frames[--i]);
            free(names);
            free(ages);
            return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " notes", n);
        }
    }
    struct dp_reply reply = {.kind = DP_REPLY_NOTES, .notes = n, .note = names, .age_ms = ages};
    answer(control, to, request, &reply, frames, n);
    free(names);
    free(ages);
    return DP_OK;
}

static void send_status(struct dp_control *control, const struct dp_peer *to,
                        const struct dp_request *request)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    struct dp_reply reply = {.kind = DP_REPLY_STATUS};
    reply.report.counters = control->options.counters(control->options.context, counters);
    reply.report.counter = counters;
    answer(control, to, request, &reply, NULL, 0);
}

/* The table is one for all workers: the first server's. */
static enum dp_status lease(struct dp_control *control, const struct dp_peer *to,
                            const struct dp_request *request, struct dp_error *err)
{
    struct dp_lease_answer given;
    if (!control->service)
        return dp_fail(err, DP_UNSUPPORTED,
                       "leases are given by the first server, at %s; this is another server",
                       control->first_server);
    enum dp_status st = dp_leases_take(control->leases, dp_awake_ns(&control->awake), request, &given, err);
    if (st != DP_OK)
        return st;
    struct dp_frame numbers = dp_frame_new(given.count * sizeof given.number[0]);
    if (!numbers.data && given.count > 0)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " leases", given.count);
    for (uint32_t i = 0; i < given.count; i++)
        dp_store_u64le((char *)numbers.data + i * sizeof given.number[0], given.number[i]);
    struct dp_reply reply = {
        .kind = DP_REPLY_LEASED, .lease = given.state, .wait_ms = given.wait_ms, .done = given.done};
    answer(control, to, request, &reply, &numbers, 1);
    return DP_OK;
}

static enum dp_status checkpoint(struct dp_control *control, const struct dp_peer *to,
                                 const struct dp_request *request, struct dp_error *err)
{
    struct dp_checkpoint_made made;
    struct dp_frame frame = {0};
    struct dp_reply reply = {.kind = DP_REPLY_CHECKPOINT};
    if (!control->options.checkpoint)
        return dp_fail(
            err, DP_UNSUPPORTED,
            "checkpoints are made by the first server, at %s, unless it is read-only; this server makes none",
            control->first_server);
    enum dp_status st = control->options.checkpoint(control->options.context, &request->checkpoint,
                                                    &reply.checkpoint, &made, err);
    if (st != DP_OK)
        return st;
    uint32_t frames = dp_checkpoint_frames(reply.checkpoint.stage);
    if (frames > 0)
        frame = dp_frame_new(sizeof made);
    if (frames > 0 && !frame.data)
        return dp_fail(err, DP_NOMEM, "no memory for the answer about a checkpoint");
    for (size_t i = 0; frames > 0 && i < sizeof made / 8; i++)
        dp_store_u64le((char *)frame.data + 8 * i, ((const uint64_t *)&made)[i]);
    answer(control, to, request, &reply, &frame, frames);
    return DP_OK;
}

static enum dp_status check_cluster(const struct dp_control *control, const struct dp_request *request,
                                    struct dp_error *err)
{
    if (request->cluster != control->options.cluster)
        return dp_fail(err, DP_GENERATION,
                       "this server belongs to cluster %016" PRIx64 ", the request names %016" PRIx64
                       ": server and client use different cluster files",
                       control->options.cluster, request->cluster);
    return dp_control_generation_check(&control->generation, request, err);
}

static enum dp_status do_request(struct dp_control *control, const struct dp_peer *from,
                                 const struct dp_request *request, struct dp_error *err)
{
    enum dp_status st = check_cluster(control, request, err);
    if (st != DP_OK)
        return st;
    struct dp_reply reply = {.kind = DP_REPLY_WELCOME,
                             .boot = control->options.boot,
                             .window = 1,
                             .register_id = control->values ? dp_control_register_id(control->values) : 0};
    switch (request->kind) {
    case DP_REQUEST_HELLO:
        answer(control, from, request, &reply, NULL, 0);
        return DP_OK;
    case DP_REQUEST_STATUS:
        send_status(control, from, request);
        return DP_OK;
    case DP_REQUEST_NOTES_GET:
        return get_notes(control, from, request, err);
    case DP_REQUEST_NOTE_PUT:
        DP_ASSERT(pthread_mutex_lock(&control->board_lock) == 0);
        st = dp_board_put(control->board, dp_clock_ns(&control->clock), request->name, request->note,
                          request->note_bytes, err);
        DP_ASSERT(pthread_mutex_unlock(&control->board_lock) == 0);
        reply.kind = DP_REPLY_NONE;
        if (st == DP_OK)
            answer(control, from, request, &reply, NULL, 0);
        return st;
    case DP_REQUEST_REGISTER_GET:
    case DP_REQUEST_REGISTER_SET:
    case DP_REQUEST_REGISTER_COPY:
        if (!control->service)
            return dp_fail(err, DP_UNSUPPORTED,
                           "the register is kept by the first server, at %s; this is another server",
                           control->first_server);
        return dp_control_register_service_take(control->service, dp_clock_ns(&control->clock), from, request,
                                                err);
    case DP_REQUEST_HEARTBEAT:
        if (!control->heartbeats)
            return dp_fail(err, DP_UNSUPPORTED,
                           "heartbeats go to the first server, at %s; this is another server",
                           control->first_server);
        return dp_control_heartbeats_take(control->heartbeats, dp_awake_ns(&control->awake), from, request,
                                          err);
    case DP_REQUEST_LEASE:
        return lease(control, from, request, err);
    case DP_REQUEST_CHECKPOINT:
        return checkpoint(control, from, request, err);
    default:
        return dp_fail(err, DP_UNSUPPORTED,
                       "this is a control endpoint: send requests for rows to a shard's endpoint");
    }
}

static void do_message(struct dp_control *control, const struct dp_peer *from,
                       const struct dp_message *message)
{
    struct dp_request *request = calloc(1, sizeof *request);
    struct dp_error err = {0};
    if (!request)
        return; /* the client resends */
    enum dp_status st = dp_request_decode(message, request, &err);
    if (st == DP_OK)
        st = do_request(control, from, request, &err);
    if (st != DP_OK && request->id != 0) {
        struct dp_reply reply = {
            .kind = DP_REPLY_NONE, .status = dp_status_answered(st), .wait = dp_wait_answered(&err)};
        (void)snprintf(reply.reason, sizeof reply.reason, "%s", err.text);
        answer(control, from, request, &reply, NULL, 0);
    }
    free(request);
}

static void report_started(struct dp_control *control, enum dp_status st, const struct dp_error *err)
{
    DP_ASSERT(pthread_mutex_lock(&control->lock) == 0);
    control->started = true;
    control->started_status = st;
    control->started_error = *err;
    DP_ASSERT(pthread_cond_signal(&control->started_changed) == 0);
    DP_ASSERT(pthread_mutex_unlock(&control->lock) == 0);
}

/* ---- the register ---- */

/* Each set writes all of the register, so two processes would undo each other's sets. On a file system without
 * locks the server runs without this check. */
static enum dp_status lock_register(struct dp_control *control, const char *directory, struct dp_error *err)
{
    control->register_lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (control->register_lock < 0)
        return dp_fail(err, DP_IO, "cannot open the directory: %s", strerror(errno));
    if (flock(control->register_lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return dp_fail(err, DP_IN_USE,
                       "another server is using it; stop that server, or use another directory");
    return DP_OK;
}

/* Values that are never dropped must leave space for those of runs. */
static enum dp_status check_share(const struct dp_control *control, const struct dp_control_names_set *set,
                                  struct dp_error *err)
{
    size_t bytes;
    uint32_t count;
    if (!dp_control_names_is_kept(set->name))
        return DP_OK;
    dp_control_register_measure(control->values, dp_control_names_is_kept, set->name, &bytes, &count);
    if (bytes + strlen(set->name) + set->size <= KEPT_BYTES_MAX && count < KEPT_VALUES_MAX)
        return DP_OK;
    return dp_fail(
        err, DP_FULL,
        "register value '%s': values that belong to no run take %u bytes and are %u at most, as they are "
        "never dropped: give it a name of a run (\"run/12/...\")",
        set->name, KEPT_BYTES_MAX, KEPT_VALUES_MAX);
}

static enum dp_status check_set(void *context, const struct dp_control_names_set *set, struct dp_error *err)
{
    const struct dp_control *control = context;
    const struct dp_control_names_rules rules = {.wall_s = dp_clock_ns(&control->wall) / UINT64_C(1000000000),
                                                 .shards = control->options.shards};
    enum dp_status st = dp_control_names_check(&rules, set, err);
    return st == DP_OK ? check_share(control, set, err) : st;
}

static enum dp_status open_register(struct dp_control *control, struct dp_error *err)
{
    const char *directory = control->options.register_directory;
    bool made = false;
    struct dp_control_register_options options = {
        .disk = &control->disk, .create = true, .read_only = control->options.read_only};
    if (!directory)
        return DP_OK;
    enum dp_status st = options.read_only ? dp_read_only_disk_open(directory, &control->disk, err)
                                          : dp_disk_open(directory, &control->disk, err);
    if (st == DP_OK && !options.read_only)
        st = lock_register(control, directory, err);
    while (st == DP_OK && options.new_id == 0)
        if (getrandom(&options.new_id, sizeof options.new_id, 0) != (ssize_t)sizeof options.new_id)
            st = dp_fail(err, DP_IO, "cannot create the register's id: getrandom failed");
    if (st == DP_OK)
        st = dp_control_register_open(&options, &control->values, &made, err);
    if (st == DP_OK && made)
        dp_log(DP_LOG_INFO, "created register %016" PRIx64 " in %s", options.new_id, directory);
    const struct dp_control_register_service_options service = {
        .values = control->values, .check = check_set, .answer = send_reply, .context = control};
    if (st == DP_OK)
        st = dp_control_register_service_new(&service, &control->service, err);
    control->heartbeats = calloc(1, sizeof *control->heartbeats);
    if (st == DP_OK && !control->heartbeats)
        st = dp_fail(err, DP_NOMEM, "no memory for the members' heartbeats");
    control->awake = dp_awake_over(&control->clock, DP_HEARTBEATS_LOOK_MS * MS_NS);
    if (st == DP_OK && control->options.prove)
        return control->options.prove(control->options.context, control->values, err);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "%s", directory);
}

/* Answers the register's waiters that are due, and, when no message waits, the heartbeats. Returns how long the thread may sleep. */
static uint32_t tick(struct dp_control *control, bool all_heard)
{
    if (!control->service)
        return WAIT_MS;
    if (all_heard)
        dp_control_heartbeats_answer(control->heartbeats, dp_awake_ns(&control->awake), send_reply, control);
    uint32_t wait_ms = control->heartbeats->run ? DP_HEARTBEATS_LOOK_MS : WAIT_MS;
    uint64_t now_ns = dp_clock_ns(&control->clock);
    dp_control_register_service_tick(control->service, now_ns);
    uint64_t due_ns = dp_control_register_service_due_ns(control->service);
    DP_ASSERT(due_ns > now_ns);
    uint64_t ms = (due_ns - now_ns - 1) / MS_NS + 1;
    return ms < wait_ms ? (uint32_t)ms : wait_ms;
}

/* Known once the stores are open. */
static void settle_generation(struct dp_control *control)
{
    DP_ASSERT(pthread_mutex_lock(&control->lock) == 0);
    bool is_found = control->is_found;
    struct dp_control_generation found = control->found;
    DP_ASSERT(pthread_mutex_unlock(&control->lock) == 0);
    if (!is_found)
        return;
    uint64_t count;
    control->generation = dp_control_generation_settle(control->values, found);
    if (read(control->wake_fd, &count, sizeof count) < 0)
        return; /* nothing there: the options had it */
}

const char *dp_control_endpoint(const struct dp_control *control)
{
    return control->endpoint;
}

void dp_control_set_generation(struct dp_control *control, uint64_t generation, uint64_t history)
{
    uint64_t one = 1;
    DP_ASSERT(pthread_mutex_lock(&control->lock) == 0);
    DP_ASSERT(!control->is_found);
    control->is_found = true;
    control->found = (struct dp_control_generation){generation, history};
    DP_ASSERT(pthread_mutex_unlock(&control->lock) == 0);
    DP_ASSERT(write(control->wake_fd, &one, sizeof one) == sizeof one);
}

static void *serve(void *arg)
{
    struct dp_control *control = arg;
    struct dp_error err = {0};
    enum dp_status st =
        dp_listener_open(control->options.net, control->options.endpoint, &control->listener, &err);
    const struct dp_listener_limits limits = {.unsent_bytes = WAITING_MAX,
                                              .waiting_bytes = WAITING_MAX,
                                              .all_waiting_bytes = 2 * WAITING_MAX,
                                              .stall_ms = DP_STALL_MS};
    if (st == DP_OK)
        dp_listener_limit(control->listener, &limits);
    /* after the socket, so that a second server on the same port does not touch the register */
    if (st == DP_OK)
        st = open_register(control, &err);
    if (st == DP_OK)
        (void)snprintf(control->endpoint, sizeof control->endpoint, "%s",
                       dp_listener_endpoint(control->listener));
    report_started(control, st, &err);
    while (st == DP_OK && !atomic_load(&control->stop)) {
        struct dp_peer from;
        struct dp_message *message = NULL;
        uint32_t n = 0;
        atomic_store(&control->round_ns, dp_clock_ns(&control->clock));
        if (control->generation.number == 0)
            settle_generation(control);
        while (n++ < RECEIVE_MAX && dp_listener_receive(control->listener, &from, &message)) {
            do_message(control, &from, message);
            dp_message_free(&message);
        }
        uint32_t wait_ms = tick(control, n <= RECEIVE_MAX);
        if (n <= RECEIVE_MAX && !atomic_load(&control->stop)) /* its wake may have been read above */
            dp_listener_wait(control->listener, control->wake_fd, wait_ms);
    }
    dp_listener_close(&control->listener);
    return NULL;
}

static void control_free(struct dp_control **control)
{
    dp_board_free(&(*control)->board);
    free((*control)->heartbeats);
    dp_leases_free(&(*control)->leases);
    dp_control_register_service_free(&(*control)->service);
    dp_control_register_close(&(*control)->values);
    dp_disk_close(&(*control)->disk);
    if ((*control)->register_lock >= 0)
        (void)close((*control)->register_lock);
    if ((*control)->wake_fd >= 0)
        (void)close((*control)->wake_fd);
    (void)pthread_cond_destroy(&(*control)->started_changed);
    (void)pthread_mutex_destroy(&(*control)->lock);
    (void)pthread_mutex_destroy(&(*control)->board_lock);
    free(*control);
    *control = NULL;
}

enum dp_status dp_control_start(const struct dp_control_options *options, struct dp_control **out,
                                struct dp_error *err)
{
    struct dp_control *control = calloc(1, sizeof *control);
    if (!control)
        return dp_fail(err, DP_NOMEM, "no memory for the control thread");
    control->options = *options;
    control->register_lock = -1;
    control->is_found = options->generation != 0;
    control->found = (struct dp_control_generation){options->generation, options->history};
    if (options->first_server)
        (void)snprintf(control->first_server, sizeof control->first_server, "%s", options->first_server);
    control->clock = dp_clock_real();
    control->wall = dp_clock_wall();
    atomic_store(&control->round_ns, dp_clock_ns(&control->clock));
    DP_ASSERT(pthread_mutex_init(&control->lock, NULL) == 0 &&
              pthread_mutex_init(&control->board_lock, NULL) == 0 &&
              pthread_cond_init(&control->started_changed, NULL) == 0);
    control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum dp_status st =
        control->wake_fd < 0 ? dp_fail(err, DP_IO, "cannot create the control thread's eventfd") : DP_OK;
    if (st == DP_OK)
        st = dp_board_new(&control->board, err);
    if (st == DP_OK)
        st = dp_leases_new(&control->leases, err);
    if (st == DP_OK && pthread_create(&control->thread, NULL, serve, control) != 0)
        st = dp_fail(err, DP_NOMEM, "cannot start the control thread");
    if (st != DP_OK) {
        control_free(&control);
        return st;
    }
    DP_ASSERT(pthread_mutex_lock(&control->lock) == 0);
    while (!control->started) /* short: the thread opens a socket and a small file */
        DP_ASSERT(pthread_cond_wait(&control->started_changed, &control->lock) == 0);
    DP_ASSERT(pthread_mutex_unlock(&control->lock) == 0);
    *out = control;
    if (control->started_status != DP_OK) {
        st = control->started_status;
        *err = control->started_error;
        dp_control_stop(out);
    }
    return st;
}

void dp_control_stop(struct dp_control **control)
{
    if (!*control)
        return;
    atomic_store(&(*control)->stop, true);
    uint64_t one = 1;
    DP_ASSERT(write((*control)->wake_fd, &one, sizeof one) == sizeof one);
    DP_ASSERT(pthread_join((*control)->thread, NULL) == 0);
    control_free(control);
}

uint64_t dp_control_idle_ms(const struct dp_control *control)
{
    uint64_t round_ns = atomic_load(&control->round_ns), now_ns = dp_clock_ns(&control->clock);
    return now_ns > round_ns ? (now_ns - round_ns) / MS_NS : 0;
}

void dp_control_each_note(struct dp_control *control, const char *prefix,
                          void (*see)(void *context, const struct dp_board_note *note, uint64_t age_ns),
                          void *context)
{
    const struct dp_board_note *note;
    DP_ASSERT(pthread_mutex_lock(&control->board_lock) == 0);
    uint64_t now_ns = dp_clock_ns(&control->clock);
    uint32_t n = dp_board_find(control->board, prefix, &note);
    for (uint32_t i = 0; i < n; i++)
        see(context, &note[i], now_ns > note[i].put_ns ? now_ns - note[i].put_ns : 0);
    DP_ASSERT(pthread_mutex_unlock(&control->board_lock) == 0);
}
