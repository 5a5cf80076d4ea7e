/* downpour-server: one server of a cluster.
 *     read the cluster file -> a thread for each shard, one for control -> wait for SIGTERM -> drain,
 *     write back, exit 0
 * Exit      0: closed cleanly. 2: it could not start, or could not write its rows back; why is on stderr.
 *           3: the same command may succeed later: with --until-done, a signal stopped it before the run was
 *           done. */
#define _GNU_SOURCE
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/config/cluster.h"
#include "common/env/limits.h"
#include "common/wire/counters.h"
#include "server/beginning.h"
#include "server/control/control.h"
#include "server/coordinator/coordinator.h"
#include "server/discard.h"
#include "server/first_history.h"
#include "server/layout.h"
#include "server/metrics/exporter.h"
#include "server/registration.h"
#include "server/restore/auto_restore.h"
#include "server/restore/restore.h"
#include "server/restore/restore_exchange.h"
#include "server/run_end.h"
#include "server/shard_parts.h"
#include "server/shard_thread.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SAY_MS          10000 /* between lines on how far recovery is */
#define AGAIN_MS        1000  /* before a layout that met a full disk is put again */
#define START_MAX       32u
#define FILES_FEW       4096u                /* below this a warning: 256 GB of rows alone */
#define ROWS_FILE_BYTES ((uint64_t)80 << 20) /* a file of rows has 64 MB and a little */

struct server {
    const char *file; /* of the cluster */
    struct dp_cluster *cluster;
    struct dp_cluster_server *self; /* in it */
    bool routed;                    /* its host is the address of its route to the first server */
    uint32_t number;
    uint64_t boot, salt;
    struct dp_net *net;
    int read_only, replaces, discards, existing, overwrite, exchanges, until_done, is_new; /* flags */
    const char *first, *start;      /* --first, --start, or NULL */
    const char *restores, *history; /* a checkpoint, and the word of that restore; NULL: it serves */
    const char *without;            /* tables that the restore leaves out; NULL: none */
    struct dp_registration *registration;
    struct dp_copier_thread *copier; /* NULL: read-only */
    atomic_uint started;             /* read by control */
    struct dp_shard_thread *shard[DP_SHARDS_MAX];
    bool layout_known;          /* its directory says which shards are there */
    bool serves[DP_SHARDS_MAX]; /* it was logged */
    atomic_bool ready;          /* all serve */
    int opened_fd;              /* a shard came to serve, or failed, or the register changed */
    struct dp_control *control;
    struct dp_coordinator *coordinator; /* NULL: not the first server, or read-only */
    struct dp_exporter *metrics;        /* NULL: the cluster file asks for none */
    time_t started_s;
    struct dp_run_end *run_end; /* --until-done, or the cluster file asks for checkpoints */
    struct dp_beginning beginning;
};

static const char usage[] =
    "usage: downpour-server --cluster FILE --server N [--read-only | --replace-store | --discard]\n  "
    "--cluster FILE  "
    "cluster file that all servers and workers read\n  --server N      number of this server, counted from "
    "0\n  --first HOST[:PORT]  the first server, where the file only counts the servers\n  --read-only     "
    "answer pulls only, and change nothing in the store's directory\n  --replace-store "
    "start without a store that was lost: its shard starts empty, and the log says what is lost; or\n        "
    "          accept another store, or register, in place of the one that the cluster knew; or go on where "
    "the register's\n"
    "                  list of stores cannot be read\n"
    "  --new           begin a new cluster, where server 0 has no store and no checkpoint says that there "
    "was one; "
    "of no\n                  effect where there is a store\n"
    "  --discard       start empty where a store was not closed cleanly and has no journal (durability "
    "none), or is missing\n"
    "  --existing-store  refuse to start where a shard has no store, also on the very first start\n"
    "  --restore CHECKPOINT  build this server's store from DIR/checkpoint-N, or from the last one of DIR, "
    "and exit; the "
    "cluster\n"
    "                  file may have other servers and shards than the checkpoint. With several servers, "
    "--exchange follows\n"
    "  --overwrite     with --restore: replace the store that is there\n"
    "  --exchange      with --restore and --history as before, for server 0, after all servers have built: "
    "what "
    "they built\n"
    "                  becomes their stores; the others follow when they start\n"
    "  --history WORD  with --restore, the same for all servers: another one for each restore, so that no "
    "worker\n"
    "                  and no store of before is taken for one of it\n"
    "  --without TABLE[,TABLE...]  with --restore, the same for all servers and with --exchange: leave these "
    "tables out\n"
    "  --until-done    close, with exit code 0, when the run of the cluster file is done and its workers "
    "have left; "
    "on SIGTERM\n"
    "                  answer until they have, 10 s at most, and end with exit code 3: downpour node gives "
    "it\n"
    "  --start DIGITS  with --until-done, another one for each start of the cluster: a server that is "
    "restarted under it\n"
    "                  knows which workers have left; downpour node gives it\n"
    "  --help          this text\nOn SIGTERM the first server makes a last checkpoint if the cluster file "
    "has "
    "'checkpoint'. Then each\nserver finishes pending requests, writes its rows back and exits.\n";

static enum dp_status read_cluster(struct server *server, const char *number, struct dp_error *err)
{
    uint64_t n = 0;
    enum dp_status st = dp_cluster_read(server->file, &server->cluster, err);
    if (st == DP_OK)
        st = dp_parse_u64(number, 0, server->cluster->server_count - 1, "--server", &n, err);
    if (st == DP_OK && server->first)
        st = dp_cluster_set_first(server->cluster, server->first, "--first", err);
    if (st == DP_OK)
        st = dp_cluster_settle(server->cluster, (uint32_t)n, err);
    if (st == DP_OK && server->read_only && server->cluster->counted.count > 0)
        return dp_fail(err, DP_ARGUMENT,
                       "--read-only: a server that changes nothing gives its address to none, so 'servers' "
                       "must be a list, not a count");
    if (st == DP_OK) {
        server->number = (uint32_t)n;
        server->self = &server->cluster->server[n];
    }
    return st;
}

/* Which go with which. */
static enum dp_status check_flags(const struct server *server, struct dp_error *err)
{
    if (server->read_only + server->replaces + server->discards > 1)
        return dp_fail(err, DP_ARGUMENT, "--read-only, --replace-store, --discard: give one of them");
    if (server->discards && server->existing)
        return dp_fail(err, DP_ARGUMENT,
                       "--discard starts empty, which --existing-store forbids: leave one of them out");
    if (server->is_new && server->existing)
        return dp_fail(
            err, DP_ARGUMENT,
            "--new begins with empty stores, which --existing-store forbids: leave one of them out");
    if (server->until_done && server->read_only)
        return dp_fail(err, DP_ARGUMENT,
                       "--until-done waits for a run, and with --read-only none can be trained");
    if (server->start && !server->until_done)
        return dp_fail(err, DP_ARGUMENT, "--start goes with --until-done");
    const size_t digits = server->start ? strspn(server->start, "0123456789abcdef") : 1;
    if (digits == 0 || digits > START_MAX || (server->start && server->start[digits] != '\0'))
        return dp_fail(err, DP_ARGUMENT, "--start is '%.40s', but is 1 to %u of the digits 0 to 9 and a to f",
                       server->start, START_MAX);
    if (server->restores && (server->read_only || server->replaces || server->discards || server->existing ||
                             server->until_done || server->is_new))
        return dp_fail(
            err, DP_ARGUMENT,
            "--restore builds a store and serves nothing: of the other flags it takes only --overwrite, "
            "--history, --without and --exchange");
    if ((server->overwrite || server->history || server->without || server->exchanges) && !server->restores)
        return dp_fail(err, DP_ARGUMENT,
                       "--overwrite, --history, --without and --exchange go with --restore");
    return DP_OK;
}

static enum dp_status read_flags(int argc, char **argv, struct server *server, int *help,
                                 struct dp_error *err)
{
    const struct option flags[] = {{"cluster", required_argument, NULL, 'c'},
                                   {"server", required_argument, NULL, 's'},
                                   {"first", required_argument, NULL, 'F'},
                                   {"restore", required_argument, NULL, 'R'},
                                   {"history", required_argument, NULL, 'H'},
                                   {"without", required_argument, NULL, 'W'},
                                   {"start", required_argument, NULL, 'S'},
                                   {"read-only", no_argument, &server->read_only, 1},
                                   {"replace-store", no_argument, &server->replaces, 1},
                                   {"discard", no_argument, &server->discards, 1},
                                   {"new", no_argument, &server->is_new, 1},
                                   {"existing-store", no_argument, &server->existing, 1},
                                   {"overwrite", no_argument, &server->overwrite, 1},
                                   {"exchange", no_argument, &server->exchanges, 1},
                                   {"until-done", no_argument, &server->until_done, 1},
                                   {"help", no_argument, help, 1},
                                   {NULL, 0, NULL, 0}};
    const char *path = NULL, *number = NULL;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        if (c == 'c')
            path = optarg;
        else if (c == 's')
            number = optarg;
        else if (c == 'F')
            server->first = optarg;
        else if (c == 'R')
            server->restores = optarg;
        else if (c == 'H')
            server->history = optarg;
        else if (c == 'W')
            server->without = optarg;
        else if (c == 'S')
            server->start = optarg;
        else if (c != 0)
            return dp_fail(err, DP_ARGUMENT, "flag '%s' is unknown or has no value; see --help",
                           argv[optind - 1]);
    }
    if (*help)
        return DP_OK;
    if (optind < argc)
        return dp_fail(err, DP_ARGUMENT, "'%s' is not a flag; see --help", argv[optind]);
    if (!path || !number)
        return dp_fail(err, DP_ARGUMENT, "--cluster and --server are required; see --help");
    enum dp_status st = check_flags(server, err);
    if (st != DP_OK)
        return st;
    server->file = path;
    return read_cluster(server, number, err);
}

/* The server's counters: those of its shards that serve. */
static uint32_t merge_counters(void *context, struct dp_counter counters[DP_COUNTERS_MAX])
{
    const struct server *server = context;
    uint32_t n = 0;
    uint32_t started = server->started;
    for (uint32_t i = 0; i < started; i++) {
        struct dp_counter one[DP_COUNTERS_MAX];
        uint32_t these = dp_shard_thread_counters(server->shard[i], one);
        if (n > 0) {
            dp_counter_merge(counters, n, one, these);
        } else {
            memcpy(counters, one, these * sizeof one[0]);
            n = these;
        }
    }
    return n;
}

static void wake(void *context)
{
    const struct server *server = context;
    uint64_t one = 1;
    DP_ASSERT(write(server->opened_fd, &one, sizeof one) == sizeof one);
}

/* Control is there before the shards are. */
static void know_generation(void *context, uint64_t generation, uint64_t history)
{
    const struct server *server = context;
    dp_control_set_generation(server->control, generation, history);
}

static struct dp_layout layout_of(const struct server *server)
{
    struct dp_layout layout = {.count = server->self->shards, .total = dp_cluster_shards(server->cluster)};
    for (uint32_t i = 0; i < server->number; i++)
        layout.first += server->cluster->server[i].shards;
    return layout;
}

static void name_shard(const struct server *server, uint32_t at, uint32_t *index,
                       char directory[DP_PATH_MAX + 32])
{
    *index = layout_of(server).first + at;
    (void)snprintf(directory, DP_PATH_MAX + 32, "%s/shard-%04" PRIu32, server->self->store, *index);
}

static enum dp_status start_shards(struct server *server, struct dp_error *err)
{
    for (; server->started < server->self->shards; atomic_fetch_add(&server->started, 1)) {
        char endpoint[DP_HOST_MAX + 32], directory[DP_PATH_MAX + 32];
        uint32_t index;
        name_shard(server, server->started, &index, directory);
        dp_cluster_listen_endpoint(server->cluster, server->number, 1 + server->started, endpoint,
                                   sizeof endpoint);
        struct dp_shard_thread_options options = {
            .net = server->net,
            .endpoint = endpoint,
            .directory = directory,
            .index = index,
            .shards = dp_cluster_shards(server->cluster),
            .cluster = server->cluster->id,
            .boot = server->boot,
            .salt = server->salt,
            .cache_bytes = server->cluster->cache_bytes,
            .read_only = server->read_only,
            .copier = server->copier,
            .gate = dp_registration_gate(server->registration, server->started, directory),
            .opened = wake,
            .opened_context = server,
            .journal = {.journaled = server->cluster->durability != DP_CLUSTER_NONE,
                        .synced = server->cluster->durability == DP_CLUSTER_MACHINE,
                        .budget_bytes = server->cluster->journal_bytes}};
        enum dp_status st = dp_shard_thread_start(&options, &server->shard[server->started], err);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

static enum dp_status take_checkpoint(void *context, const struct dp_checkpoint_ask *ask,
                                      struct dp_checkpoint_state *state, struct dp_checkpoint_made *made,
                                      struct dp_error *err)
{
    const struct server *server = context;
    return dp_coordinator_take(server->coordinator, ask, state, made, err);
}

static enum dp_status prove(void *context, struct dp_control_register *values, struct dp_error *err)
{
    const struct server *server = context;
    enum dp_status st = dp_beginning_prove(&server->beginning, values, err);
    return st == DP_OK ? dp_run_end_prepare(values, server->until_done != 0, server->start, err) : st;
}

static enum dp_status compare(void *context, struct dp_client *client, struct dp_error *err)
{
    const struct server *server = context;
    return dp_beginning_compare(&server->beginning, client, err);
}

static void object(void *context)
{
    const struct server *server = context;
    dp_auto_restore_object(server->cluster, server->number);
}

static enum dp_status start_control(struct server *server, struct dp_error *err)
{
    char endpoint[DP_HOST_MAX + 32], first[DP_HOST_MAX + 32];
    dp_cluster_listen_endpoint(server->cluster, server->number, 0, endpoint, sizeof endpoint);
    dp_cluster_control_endpoint(server->cluster, 0, first, sizeof first);
    struct dp_control_options options = {.net = server->net,
                                         .endpoint = endpoint,
                                         .cluster = server->cluster->id,
                                         .shards = dp_cluster_shards(server->cluster),
                                         .boot = server->boot,
                                         .counters = merge_counters,
                                         .context = server,
                                         .register_directory =
                                             server->number == 0 ? server->self->store : NULL,
                                         .first_server = first,
                                         .read_only = server->read_only};
    const struct dp_coordinator_options coordinator = {
        .cluster = server->cluster, .file = server->file, .directory = server->self->store};
    const bool coordinates = server->number == 0 && !server->read_only;
    options.checkpoint = coordinates ? take_checkpoint : NULL;
    options.prove = coordinates ? prove : NULL;
    enum dp_status st = coordinates ? dp_coordinator_new(&coordinator, &server->coordinator, err) : DP_OK;
    if (st == DP_OK)
        st = dp_control_start(&options, &server->control, err);
    return st == DP_OK && coordinates ? dp_coordinator_start(server->coordinator, err) : st;
}

/* ---- metrics: on their thread, while control and shards are there */

static void observe_shard(void *context, uint32_t at, struct dp_exporter_shard *out)
{
    const struct server *server = context;
    if (at >= server->started)
        (void)dp_fail(&out->why, DP_AGAIN, "shard %" PRIu32 " is not started yet",
                      layout_of(server).first + at);
    else if ((out->since_s = dp_shard_thread_observe(server->shard[at], &out->observed)) == 0)
        dp_shard_thread_say(server->shard[at], &out->why);
}

static uint64_t control_idle_ms(void *context)
{
    return dp_control_idle_ms(((const struct server *)context)->control);
}

static void each_note(void *context, const char *prefix,
                      void (*see)(void *to, const struct dp_board_note *note, uint64_t age_ns), void *to)
{
    dp_control_each_note(((const struct server *)context)->control, prefix, see, to);
}

static enum dp_status start_metrics(struct server *server, struct dp_error *err)
{
    struct dp_metrics_address address;
    const struct dp_exporter_source source = {.cluster = server->cluster->name,
                                              .server = server->number,
                                              .first_shard = layout_of(server).first,
                                              .shards = server->self->shards,
                                              .started_s = (uint64_t)server->started_s,
                                              .shard = observe_shard,
                                              .control_idle_ms = control_idle_ms,
                                              .each_note = each_note,
                                              .context = server};
    if (!server->cluster->metrics[0])
        return DP_OK;
    enum dp_status st = dp_metrics_address_of(server->cluster, server->number, &address, err);
    if (st == DP_OK)
        st = dp_exporter_start(&address, &source, &server->metrics, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "metrics at %s/metrics, a page at %s/", dp_exporter_url(server->metrics),
               dp_exporter_url(server->metrics));
    return st;
}

/* With the others, from the directory of checkpoints. */
static bool restores_itself(const struct server *server)
{
    return server->cluster->checkpoint.every > 0 && !server->read_only && server->number > 0;
}

static enum dp_status make_registration(struct server *server, struct dp_error *err)
{
    char first[DP_HOST_MAX + 32];
    const struct dp_layout layout = layout_of(server);
    dp_cluster_control_endpoint(server->cluster, 0, first, sizeof first);
    const struct dp_registration_options options = {.control = first,
                                                    .cluster = server->cluster->id,
                                                    .opening = server->boot,
                                                    .first = layout.first,
                                                    .count = layout.count,
                                                    .total = layout.total,
                                                    .read_only = server->read_only,
                                                    .replaces = server->replaces,
                                                    .discards = server->discards,
                                                    .known = know_generation,
                                                    .lost = wake,
                                                    .compare = server->read_only ? NULL : compare,
                                                    .silent = restores_itself(server) ? object : NULL,
                                                    .context = server};
    return dp_registration_new(&options, &server->registration, err);
}

/* All shards drain at once; the first failure is returned, the others are logged. */
static enum dp_status stop(struct server *server, bool *all_clean, struct dp_error *err)
{
    enum dp_status first = DP_OK;
    if (server->registration)
        dp_registration_stop(server->registration);
    dp_exporter_stop(&server->metrics);
    /* Control reads the shards' counters: it goes first, a shard frees itself as soon as it has drained. */
    dp_control_stop(&server->control);
    dp_coordinator_give_up(server->coordinator); /* control asks it; it orders shards to end their part */
    for (uint32_t i = 0; i < server->started; i++)
        dp_shard_thread_drain(server->shard[i]);
    dp_coordinator_stop(&server->coordinator);
    for (uint32_t i = 0; i < server->started; i++) {
        struct dp_error one = {0};
        enum dp_status st = dp_shard_thread_join(&server->shard[i], &one);
        if (st == DP_STOPPING) { /* it was still opening: nothing is lost */
            *all_clean = false;
            continue;
        }
        if (st != DP_OK && first != DP_OK)
            dp_log(DP_LOG_ERROR, "%s", one.text);
        if (st != DP_OK && first == DP_OK) {
            first = st;
            *err = one;
        }
    }
    dp_copier_thread_close(&server->copier);
    dp_registration_free(&server->registration);
    dp_net_close(&server->net);
    return first;
}

/* Logs each shard that begins to serve. True: all do. */
static bool all_serve(struct server *server, bool *failed)
{
    bool all = true;
    for (uint32_t i = 0; i < server->started; i++) {
        char directory[DP_PATH_MAX + 32];
        uint32_t index;
        enum dp_shard_thread_state state = dp_shard_thread_state(server->shard[i]);
        all = all && state == DP_SHARD_THREAD_SERVES;
        *failed = *failed || state == DP_SHARD_THREAD_FAILED;
        if (state != DP_SHARD_THREAD_SERVES || server->serves[i])
            continue;
        server->serves[i] = true;
        name_shard(server, i, &index, directory);
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " of %" PRIu32 " serves at %s, store %s", index,
               dp_cluster_shards(server->cluster), dp_shard_thread_endpoint(server->shard[i]), directory);
    }
    return all;
}

static void say_opening(const struct server *server)
{
    for (uint32_t i = 0; i < server->started; i++) {
        struct dp_error text;
        if (dp_shard_thread_state(server->shard[i]) == DP_SHARD_THREAD_OPENS) {
            dp_shard_thread_say(server->shard[i], &text);
            dp_log(DP_LOG_INFO, "%s", text.text);
        }
    }
}

static uint16_t port_of(const char *endpoint)
{
    return (uint16_t)strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
}

/* Where the others find it: its own host, and the ports that its sockets are bound to. */
static struct dp_address address_of(const struct server *server)
{
    struct dp_address address = {.ports = 1 + server->started};
    (void)snprintf(address.host, sizeof address.host, "%s", server->self->host);
    address.port[0] = port_of(dp_control_endpoint(server->control));
    for (uint32_t i = 0; i < server->started; i++)
        address.port[1 + i] = port_of(dp_shard_thread_endpoint(server->shard[i]));
    return address;
}

/* All shards serve. */
static enum dp_status get_ready(struct server *server, struct dp_error *err)
{
    const struct dp_layout layout = layout_of(server);
    if (!server->layout_known && !server->read_only) {
        enum dp_status st = dp_layout_put(server->self->store, &layout, err);
        if (st != DP_OK)
            return st;
    }
    const struct dp_address address = address_of(server);
    enum dp_status st = dp_registration_watch(server->registration,
                                              server->cluster->counted.count > 0 ? &address : NULL, err);
    if (st != DP_OK)
        return st;
    dp_log(DP_LOG_INFO, "ready: %" PRIu32 " shards of cluster '%s', generation %" PRIu64 "%s",
           server->started, server->cluster->name, dp_registration_generation(server->registration),
           server->read_only ? ", read-only" : "");
    return DP_OK;
}

/* Its machine may have another address now, at which nothing listens: the next start takes that one.
 * Without any, it may come back. */
static enum dp_status check_host(const struct server *server, struct dp_error *err)
{
    char first[DP_HOST_MAX + 32], host[DP_HOST_MAX + 1];
    dp_cluster_control_endpoint(server->cluster, 0, first, sizeof first);
    if (dp_net_is_own(server->self->host) ||
        dp_net_route(server->net, first, AGAIN_MS, host, sizeof host, NULL) != DP_OK)
        return DP_OK;
    return dp_fail(
        err, DP_UNAVAILABLE,
        "this machine's address was %s and is %s now: start this server again, and it gives that one "
        "to the first server",
        server->self->host, host);
}

/* Returns at a signal to stop (*received), when the run is over, or when a shard could not be opened (0). */
static enum dp_status serve_until_stopped(struct server *server, int signal_fd, int *received,
                                          struct dp_error *err)
{
    bool ready = false, failed = false, reported = false;
    enum dp_status st = DP_OK;
    while (*received == 0 && !failed && (st == DP_OK || st == DP_FULL)) {
        struct pollfd fds[2] = {{.fd = signal_fd, .events = POLLIN},
                                {.fd = server->opened_fd, .events = POLLIN}};
        struct signalfd_siginfo signal;
        uint64_t count;
        int n = poll(fds, 2, ready && !server->routed ? -1 : ready || st == DP_FULL ? AGAIN_MS : SAY_MS);
        if (n == 0)
            say_opening(server);
        if (fds[1].revents && read(server->opened_fd, &count, sizeof count) != sizeof count)
            continue;
        if (fds[0].revents && read(signal_fd, &signal, sizeof signal) == sizeof signal)
            *received = (int)signal.ssi_signo;
        bool all = all_serve(server, &failed);
        if (ready)
            st = dp_registration_check(server->registration, err);
        if (ready && st == DP_OK && server->routed)
            st = check_host(server, err);
        if (all && !ready && *received == 0)
            st = get_ready(server, err);
        if (st == DP_FULL && !reported)
            dp_log(DP_LOG_ERROR, "the names of its shards have no room: %s; it is tried again each second",
                   err->text);
        reported = st == DP_FULL;
        ready = ready || (all && st == DP_OK);
        atomic_store(&server->ready, ready);
        if (st == DP_OK)
            st = dp_run_end_check(server->run_end, err);
        if (ready && dp_run_end_is_over(server->run_end))
            break;
    }
    return st == DP_FULL ? DP_OK : st; /* stopped: the next start puts them */
}

static enum dp_status open_fds(struct server *server, const sigset_t *signals, int *signal_fd,
                               struct dp_error *err)
{
    *signal_fd = signalfd(-1, signals, SFD_CLOEXEC);
    server->opened_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*signal_fd < 0 || server->opened_fd < 0)
        return dp_fail(err, DP_IO, "signalfd, eventfd: %s", strerror(errno));
    return DP_OK;
}

/* A server that is only counted is at the address of its route to the first one, unless the file says
 * another. It waits for the route: at the start of a machine there may be none. */
static enum dp_status find_host(struct server *server, int signal_fd, struct dp_error *err)
{
    char first[DP_HOST_MAX + 32];
    enum dp_status st = dp_cluster_has_first(server->cluster, err);
    if (st != DP_OK || server->self->host[0])
        return st;
    dp_cluster_control_endpoint(server->cluster, 0, first, sizeof first);
    server->routed = true;
    for (uint32_t tries = 0;; tries++) {
        struct pollfd signal = {.fd = signal_fd, .events = POLLIN};
        st = dp_net_route(server->net, first, AGAIN_MS, server->self->host, sizeof server->self->host, err);
        if (st != DP_UNAVAILABLE)
            return st;
        if (tries % 10 == 0)
            dp_log(DP_LOG_INFO, "waits for a route to the first server, %s (of %s): %s", first,
                   server->cluster->first.from, err->text);
        if (poll(&signal, 1, AGAIN_MS) > 0)
            return dp_fail(err, DP_STOPPING, "stopped while it waited for a route to the first server");
    }
}

/* A restore that was interrupted has taken place on all servers, or on none (restore_exchange.h). */
static enum dp_status settle_restore(struct server *server, int signal_fd, struct dp_error *err)
{
    char first[DP_HOST_MAX + 32];
    dp_cluster_control_endpoint(server->cluster, 0, first, sizeof first);
    struct dp_first_history ask = {.cluster = server->cluster->id, .control = first, .signal_fd = signal_fd};
    const struct dp_restore_start start = {.store = server->self->store,
                                           .is_first = server->number == 0,
                                           .read_only = server->read_only,
                                           .ask = dp_first_history_ask,
                                           .context = &ask};
    return dp_restore_exchange_start(&start, err);
}

static void save(void *context, uint32_t retry_ms, bool (*stopped)(void *of), void *of)
{
    struct server *server = context;
    if (!atomic_load(&server->ready) || !server->coordinator)
        return;
    dp_log(DP_LOG_INFO, "the cluster stops: a last checkpoint is made, if a push came since the one before");
    dp_coordinator_take_last(server->coordinator, retry_ms, stopped, of);
}

static enum dp_status await_run_end(struct server *server, int signal_fd, struct dp_error *err)
{
    const bool saves = server->cluster->checkpoint.every > 0 && !server->read_only;
    const struct dp_run_end_options options = {.cluster = server->cluster,
                                               .server = server->number,
                                               .until_done = server->until_done != 0,
                                               .signal_fd = signal_fd,
                                               .ended = wake,
                                               .save = saves ? save : NULL,
                                               .context = server};
    return server->until_done || saves ? dp_run_end_start(&options, &server->run_end, err) : DP_OK;
}

static enum dp_status serve(struct server *server, struct dp_error *err)
{
    sigset_t signals;
    const struct dp_layout layout = layout_of(server);
    int received = 0, signal_fd = -1;
    server->opened_fd = -1;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    /* Before any thread: all of them inherit it, and only this one gets the signal. */
    DP_ASSERT(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    DP_ASSERT(getrandom(&server->boot, sizeof server->boot, 0) == (ssize_t)sizeof server->boot);
    DP_ASSERT(getrandom(&server->salt, sizeof server->salt, 0) == (ssize_t)sizeof server->salt);
    enum dp_status st = open_fds(server, &signals, &signal_fd, err);
    if (st == DP_OK)
        st = dp_net_open(1, &server->net, err);
    if (st == DP_OK && server->cluster->counted.count > 0)
        st = find_host(server, signal_fd, err);
    if (st == DP_OK)
        st = settle_restore(server, signal_fd, err);
    if (st == DP_OK)
        st = dp_layout_check(server->self->store, &layout, server->replaces || server->discards,
                             &server->layout_known, err);
    if (st == DP_OK && server->existing)
        st = dp_layout_check_stores(server->self->store, &layout, err);
    if (st == DP_OK && server->number == 0 && !server->read_only)
        st = dp_registration_may_begin(server->self->store, layout.count, server->replaces, err);
    /* Last: a register that is missed is missed by what the stores say of it. */
    if (st == DP_OK && server->discards)
        st = dp_discard(server->self->store, &layout, server->cluster->id, err);
    if (st == DP_OK)
        st = make_registration(server, err);
    if (st == DP_OK) /* before the shards: they ask the first server's for their stores */
        st = start_control(server, err);
    if (st == DP_OK)
        st = start_metrics(server, err);
    if (st == DP_OK && !server->read_only)
        st = dp_copier_thread_open(&server->copier, err);
    if (st == DP_OK)
        st = start_shards(server, err);
    if (st == DP_OK)
        st = await_run_end(server, signal_fd, err);
    if (st == DP_OK)
        st = serve_until_stopped(server, signal_fd, &received, err);
    const bool over = dp_run_end_is_over(server->run_end);
    if (received && server->run_end && !over && (server->ready || server->until_done))
        dp_run_end_leave(server->run_end);
    if (received || over)
        dp_log(DP_LOG_INFO, "%s: closing",
               over                  ? st == DP_OK ? "the run is done" : "the run has failed"
               : received == SIGTERM ? "SIGTERM"
                                     : "SIGINT");
    struct dp_error closing = {0};
    bool all_clean = true;
    enum dp_status closed = stop(server, &all_clean, st == DP_OK ? err : &closing);
    dp_run_end_stop(&server->run_end, closed == DP_OK);
    if (st != DP_OK && closed != DP_OK) /* main logs err */
        dp_log(DP_LOG_ERROR, "%s", closing.text);
    if (st == DP_OK && closed == DP_OK)
        dp_log(DP_LOG_INFO, all_clean ? "closed cleanly" : "closed; the next start recovers the rest");
    if (signal_fd >= 0)
        (void)close(signal_fd);
    if (server->opened_fd >= 0)
        (void)close(server->opened_fd);
    if (st == DP_OK && closed == DP_OK && received && server->until_done && !over)
        return dp_fail(err, DP_STOPPING, "stopped by a signal before the run was done");
    return st == DP_OK ? closed : st;
}

/* All files of the stores' rows (64 MB each) stay open, and each client is a connection to each shard: the usual 1,024 are
 * soon used up. */
static void say_files(const struct server *server, uint64_t files)
{
    /* A worker has one to each shard, and one to the first server's control. */
    const uint64_t workers = server->cluster->training.workers,
                   connections = workers * (server->self->shards + (server->number == 0));
    bool few = files < FILES_FEW + connections;
    char need[96] = "";
    if (few)
        (void)snprintf(need, sizeof need, "; %" PRIu64 " workers need %" PRIu64, workers, connections);
    dp_log(few ? DP_LOG_WARN : DP_LOG_INFO, "%" PRIu64 " files and connections can be open at once%s%s",
           files, need,
           few ? ": few for large stores and many clients, raise its hard limit (ulimit -Hn)" : "");
}

/* Of one with empty stores and a few clients, as measured. Row caches take what they need later: a limit that is
 * too low for them is only a warning. */
static enum dp_status check_limits(const struct server *server, struct dp_error *err)
{
    char who[64];
    struct dp_error full;
    const struct dp_cluster *cluster = server->cluster;
    const uint64_t shards = server->self->shards,
                   segment = cluster->durability == DP_CLUSTER_NONE
                                 ? 0
                                 : dp_shard_segment_bytes(cluster->journal_bytes);
    struct dp_limits_need need = {.files = 48 + 28 * shards,
                                  .threads = 12 + 6 * shards,
                                  .memory_bytes = (256 + 80 * shards) << 20,
                                  .file_bytes = segment > ROWS_FILE_BYTES ? segment : ROWS_FILE_BYTES};
    (void)snprintf(who, sizeof who, "a server with %" PRIu64 " shard%s", shards, shards == 1 ? "" : "s");
    enum dp_status st = dp_limits_check(who, &need, err);
    need.memory_bytes += shards * cluster->cache_bytes;
    if (st == DP_OK && dp_limits_check("once its row caches are full, this server", &need, &full) != DP_OK)
        dp_log(DP_LOG_WARN, "%s", full.text);
    return st;
}

/* Before it serves, a signal ends it as a kill does: what is half done the next start settles. */
static void end_at_once(int signal)
{
    (void)signal;
    _exit(DP_EXIT_RETRY);
}

int main(int argc, char **argv)
{
    struct server server = {.started_s = time(NULL)};
    struct dp_error err = {0};
    int help = false;
    const uint64_t files = dp_limits_begin();
    dp_log_start("server", DP_LOG_INFO);
    /* Answers of a few hundred KB come and go all the time: kept in the heap, not mapped and unmapped each
     * time. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    enum dp_status st = read_flags(argc, argv, &server, &help, &err);
    if (st == DP_OK && help)
        (void)fputs(usage, stdout);
    else if (st == DP_OK) {
        char who[32];
        (void)snprintf(who, sizeof who, "server %" PRIu32, server.number);
        dp_log_start(who, DP_LOG_INFO);
        say_files(&server, files);
        const struct dp_restore_options restore = {.checkpoint = server.restores,
                                                   .cluster = server.cluster,
                                                   .server = server.number,
                                                   .overwrite = server.overwrite,
                                                   .exchanges = server.exchanges,
                                                   .history = server.history,
                                                   .without = server.without};
        server.beginning = (struct dp_beginning){.cluster = server.cluster,
                                                 .server = server.number,
                                                 .is_new = server.is_new,
                                                 .accepts = server.replaces || server.discards};
        for (int i = 0; server.until_done && i < 2; i++)
            (void)signal(i == 0 ? SIGTERM : SIGINT, end_at_once);
        st = check_limits(&server, &err);
        if (st == DP_OK && !server.restores && !server.read_only && !server.existing)
            st = dp_beginning_settle(&server.beginning, &err);
        if (st == DP_OK)
            st = server.restores ? dp_restore(&restore, &err) : serve(&server, &err);
    }
    if (st != DP_OK)
        dp_log(st == DP_STOPPING ? DP_LOG_INFO : DP_LOG_ERROR, "%s", err.text);
    dp_cluster_free(&server.cluster);
    return dp_status_exit(st);
}
