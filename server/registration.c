/* Registering is a compare-and-set of the value "stores", in which each shard has its place. A server that loses it, as others
 * register theirs at the same time, reads the value, judges again and sets again. */
#include "server/registration.h"

#include "common/base/log.h"
#include "common/client/register_store.h"
#include "common/env/clock.h"
#include "server/control/register_file.h"
#include "server/identity.h"
#include "server/store/store_view.h"
#include "server/unread_stores.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRY_MS        2000u /* one question to the first server */
#define SAY_NS        UINT64_C(10000000000)
#define WATCH_MS      10000u /* the register keeps a question so long; another register is seen then */
#define DIRECTORY_MAX 1280u

struct registration_place { /* of one shard */
    struct dp_registration *all;
    uint32_t shard;
    char directory[DIRECTORY_MAX];
    struct dp_store_gate gate;
    bool reported;            /* its generation, or that it is new */
    struct dp_client *client; /* while it opens */
    uint64_t version;         /* of the value that `stores` is */
    struct dp_stores *stores;
    bool replaces;    /* it was to be refused */
    bool rewrites;    /* the value could not be read, and is written again */
    uint64_t id;      /* that was registered; 0: not yet */
    uint64_t said_ns; /* that it waits */
    struct dp_unread_stores unread;
};

struct dp_registration {
    struct dp_registration_options options;
    char control[320];
    atomic_bool stops;
    uint64_t register_id; /* when all have entered */
    pthread_t watcher;
    struct dp_stores *watched; /* the watcher's, as are these two */
    struct dp_address address; /* without ports: the cluster file has it */
    bool told;                 /* it was logged */
    bool watches;
    pthread_mutex_t lock;
    struct dp_error lost;         /* under the lock, as what follows */
    uint64_t generation, history; /* of this server's stores; 0, 0: not known */
    uint32_t of;                  /* by this shard */
    uint32_t fresh;               /* stores that are new */
    bool known;                   /* options.known was called */
    struct registration_place place[];
};

/* ---- asking the first server */

static bool gives_up(void *context)
{
    const struct dp_registration *r = context;
    return atomic_load(&r->stops);
}

static enum dp_status connect_to(struct dp_registration *r, struct dp_client **client, struct dp_error *err)
{
    const struct dp_client_options options = {.name = "server",
                                              .cluster = r->options.cluster,
                                              .control = r->control,
                                              .gives_up = gives_up,
                                              .gives_up_context = r};
    return *client ? DP_OK : dp_client_open(&options, client, err);
}

static uint64_t clock_ns(void)
{
    struct dp_clock clock = dp_clock_real();
    return dp_clock_ns(&clock);
}

/* Whether to ask again after this; says now and then for whom it waits. */
static bool asks_again(struct registration_place *place, enum dp_status st, struct dp_error *err)
{
    uint64_t now_ns = clock_ns();
    bool stops = atomic_load(&place->all->stops);
    if (dp_status_class((int)st) != DP_CLASS_RETRY)
        return false;
    if (place->all->options.silent && !stops)
        place->all->options.silent(place->all->options.context);
    if (stops) {
        (void)dp_fail(err, DP_STOPPING, "stopped while it waited for the first server");
        return false;
    }
    if (now_ns - place->said_ns >= SAY_NS) {
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " still asks the first server whether this is its store: %s",
               place->shard, err->text);
        place->said_ns = now_ns;
    }
    return true;
}

/* DP_OK: *place has what the value says. Otherwise the value cannot be read. */
static enum dp_status take(struct registration_place *place, struct dp_register_value *value,
                           struct dp_error *err)
{
    enum dp_status st =
        dp_stores_decode(value->bytes, value->size, place->all->options.total, place->stores, err);
    place->stores->register_id = value->register_id;
    place->version = value->version;
    dp_register_value_clear(value);
    return st;
}

static bool says(void *context, struct dp_error *err)
{
    struct registration_place *place = context;
    return dp_unread_stores_says(&place->unread, err);
}

/* None of the shards is known: its set makes the value one that can be read. */
static void begin_stores(struct registration_place *place, const struct dp_error *why)
{
    uint64_t register_id = place->stores->register_id;
    dp_log(DP_LOG_WARN, "shard %" PRIu32 " writes the value again, as --replace-store says: %s", place->shard,
           why->text);
    *place->stores = (struct dp_stores){.register_id = register_id, .shards = place->all->options.total};
    place->rewrites = true;
}

/* One answer of the first server: the value, once its version is above `above` or after wait_ms. */
static enum dp_status ask_stores(struct registration_place *place, uint64_t above, uint32_t wait_ms,
                                 struct dp_register_value *value, struct dp_error *err)
{
    enum dp_status st;
    do {
        st = connect_to(place->all, &place->client, err);
        if (st == DP_OK)
            st = dp_client_register_get(place->client, DP_STORES_NAME, above, wait_ms, TRY_MS, value, err);
    } while (st != DP_OK && asks_again(place, st, err));
    if (st != DP_OK && atomic_load(&place->all->stops))
        return dp_fail(err, DP_STOPPING, "stopped while it opened");
    return st;
}

static enum dp_status read_stores(struct registration_place *place, struct dp_error *err)
{
    struct dp_register_value value = {0};
    struct dp_error why = {0};
    enum dp_status st = ask_stores(place, 0, 0, &value, err);
    while (st == DP_OK && take(place, &value, &why) != DP_OK && !place->all->options.replaces) {
        dp_unread_stores_put(&place->unread, &why);
        st = atomic_load(&place->all->stops) ? dp_fail(err, DP_STOPPING, "stopped while it opened")
                                             : ask_stores(place, place->version, TRY_MS, &value, err);
        why = (struct dp_error){0};
    }
    dp_unread_stores_put(&place->unread, NULL);
    if (st == DP_OK && why.status != DP_OK)
        begin_stores(place, &why);
    return st;
}

static enum dp_status compare_files(struct registration_place *place, struct dp_error *err)
{
    const struct dp_registration_options *o = &place->all->options;
    enum dp_status st = DP_OK;
    if (!o->compare || o->first == 0)
        return DP_OK;
    do {
        st = connect_to(place->all, &place->client, err);
        if (st == DP_OK)
            st = o->compare(o->context, place->client, err);
    } while (st != DP_OK && asks_again(place, st, err));
    if (st != DP_OK && atomic_load(&place->all->stops))
        return dp_fail(err, DP_STOPPING, "stopped while it opened");
    return st;
}

/* ---- the generation of this server's stores */

static enum dp_status refuse_mixed(const struct registration_place *place, uint64_t generation,
                                   uint64_t history, const char *whose, uint64_t other,
                                   uint64_t other_history, struct dp_error *err)
{
    return dp_fail(
        err, DP_GENERATION,
        "shard %" PRIu32 ": its store %.120s is of generation %" PRIu64 " (history %016" PRIx64
        "), and %s of generation %" PRIu64 " (history %016" PRIx64
        "): a restore did not reach all servers. Restore the same checkpoint on each server, or put "
        "back stores of one time",
        place->shard, place->directory, generation, history, whose, other, other_history);
}

/* The generation of this shard's store; 0, 0: it is new. The first shard that knows what all have reports it. */
static enum dp_status report_generation(struct registration_place *place, uint64_t generation,
                                        uint64_t history, struct dp_error *err)
{
    struct dp_registration *r = place->all;
    char whose[48];
    DP_ASSERT(pthread_mutex_lock(&r->lock) == 0);
    bool agrees =
        generation == 0 || r->generation == 0 || (r->generation == generation && r->history == history);
    if (agrees && generation != 0 && r->generation == 0) {
        r->generation = generation;
        r->history = history;
        r->of = place->shard;
    }
    r->fresh += generation == 0 && !place->reported;
    place->reported = true;
    bool all_fresh = r->fresh == r->options.count && r->options.first == 0;
    bool says = !r->known && (r->generation != 0 || all_fresh);
    r->known = r->known || says;
    uint64_t all_generation = r->generation, all_history = r->history;
    uint32_t of = r->of;
    if (agrees && says && !atomic_load(&r->stops)) /* under the lock: dp_registration_stop */
        r->options.known(r->options.context, all_generation, all_history);
    DP_ASSERT(pthread_mutex_unlock(&r->lock) == 0);
    (void)snprintf(whose, sizeof whose, "that of shard %" PRIu32 " is", of);
    if (!agrees)
        return refuse_mixed(place, generation, history, whose, all_generation, all_history, err);
    return DP_OK;
}

/* What the first server said, with its register: its generation is that of new stores, and must be that of others. */
static enum dp_status compare_with_first(struct registration_place *place, const struct dp_store_id *found,
                                         bool is_new, struct dp_store_id *put, struct dp_error *err)
{
    dp_client_generation(place->client, &put->generation, &put->history);
    bool differs = !is_new && (put->generation != found->generation || put->history != found->history);
    if (differs && !place->all->options.replaces)
        return refuse_mixed(place, found->generation, found->history, "the first server is", put->generation,
                            put->history, err);
    if (differs)
        dp_log(DP_LOG_WARN,
               "shard %" PRIu32 ": its store in %s is of generation %" PRIu64
               " and takes that of the first server, %" PRIu64 " (--replace-store)",
               place->shard, place->directory, found->generation, put->generation);
    return report_generation(place, put->generation, put->history, err);
}

/* ---- the gate of a shard */

static struct dp_identity_case case_of(const struct registration_place *place,
                                       const struct dp_store_id *found, bool is_new)
{
    return (struct dp_identity_case){
        .found = *found, .is_new = is_new, .shard = place->shard, .stores = place->stores};
}

/* *won: it is registered. Else the value was another: it is read. */
static enum dp_status set(struct registration_place *place, const struct dp_store_id *id, bool *won,
                          struct dp_error *err)
{
    struct dp_register_value now = {0};
    char *bytes = malloc(DP_STORES_BYTES_MAX);
    if (!bytes)
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": registering its store", place->shard);
    place->stores->shard[place->shard].id = id->id;
    place->stores->shard[place->shard].opening = id->opening;
    size_t size = dp_stores_encode(place->stores, bytes);
    enum dp_status st = dp_client_register_store(place->client, place->shard, DP_STORES_NAME, place->version,
                                                 bytes, size, TRY_MS, won, &now, err);
    free(bytes);
    if (st == DP_OK)
        return take(place, &now, err) == DP_OK ? DP_OK : read_stores(place, err);
    /* It may have been stored or not. */
    bool is_open = st == DP_TOO_OLD || dp_status_class((int)st) == DP_CLASS_RETRY;
    (void)asks_again(place, st, err);
    return is_open ? read_stores(place, err) : st;
}

/* Makes the next version of the value, and changes nothing in it. What an earlier process of this shard sent, and is on its way
 * still, expects an older version: it is lost from now on. Stored later, it would name an opening that this one has taken the place
 * of, and the store would be refused for ever. */
static enum dp_status outrun_earlier(struct registration_place *place, struct dp_error *err)
{
    const uint64_t seen = place->version;
    enum dp_status st = DP_OK;
    while (st == DP_OK && place->version == seen) {
        const struct dp_store_id same = {.id = place->stores->shard[place->shard].id,
                                         .opening = place->stores->shard[place->shard].opening};
        bool won;
        st = set(place, &same, &won, err);
    }
    return st;
}

/* A store that this register knew is unknown to a value that is written again. */
static enum dp_identity judge(const struct registration_place *place, const struct dp_identity_case *it)
{
    enum dp_identity verdict = dp_identity_judge(it);
    return place->rewrites && verdict == DP_IDENTITY_REGISTER_OLDER ? DP_IDENTITY_JOINS : verdict;
}

static enum dp_status admit(void *context, const struct dp_store_id *found, bool is_new,
                            struct dp_store_id *put, struct dp_error *err)
{
    struct registration_place *place = context;
    const struct dp_registration_options *o = &place->all->options;
    if (place->id != 0 && found->id == place->id && found->opening == o->opening)
        return DP_OK; /* opened again by this process */
    place->said_ns = clock_ns();
    /* The first server's control answers once its own stores are open. */
    enum dp_status st =
        o->first == 0 ? report_generation(place, is_new ? 0 : found->generation, found->history, err) : DP_OK;
    if (st == DP_OK)
        st = compare_files(place, err);
    if (st == DP_OK)
        st = read_stores(place, err);
    if (st == DP_OK)
        st = compare_with_first(place, found, is_new, put, err);
    if (st != DP_OK)
        return st;
    struct dp_identity_case it = case_of(place, found, is_new);
    it.is_restored = put->history != 0;
    enum dp_identity verdict = judge(place, &it);
    bool unregistered = is_new || found->opening != place->stores->shard[place->shard].opening;
    if (unregistered && !o->read_only && !dp_identity_is_refused(verdict)) {
        st = outrun_earlier(place, err);
        if (st != DP_OK)
            return st;
        verdict = judge(place, &it);
    }
    if (place->rewrites && is_new)
        dp_log(DP_LOG_WARN,
               "shard %" PRIu32
               ": there is no store in %s, and the register no longer says whether there was one: "
               "this shard starts empty (--replace-store)",
               place->shard, place->directory);
    place->replaces = dp_identity_is_refused(verdict);
    bool begins = o->discards && verdict == DP_IDENTITY_LOST;
    if (place->replaces && !o->replaces && !begins)
        return dp_identity_refuse(&it, verdict, place->directory, err);
    if (place->replaces)
        dp_log(DP_LOG_WARN,
               "shard %" PRIu32 ": its store in %s takes another's place (%s): %s; there is no way "
               "back",
               place->shard, place->directory, begins ? "--discard" : "--replace-store",
               dp_identity_loss(verdict));
    const struct dp_store_id of = *put;
    if (!o->read_only)
        *put = dp_identity_next(&it, verdict, o->opening);
    put->generation = of.generation;
    put->history = of.history;
    return DP_OK;
}

static enum dp_status entered(void *context, const struct dp_store_id *id, struct dp_error *err)
{
    struct registration_place *place = context;
    enum dp_status st = DP_OK;
    place->said_ns = clock_ns();
    bool won = place->id == id->id && id->id != 0;
    while (st == DP_OK && !won) {
        st = set(place, id, &won, err);
        won = won || (st == DP_OK && place->stores->shard[place->shard].id == id->id &&
                      place->stores->shard[place->shard].opening == id->opening);
        const struct dp_identity_case it = case_of(place, id, false);
        enum dp_identity verdict = st == DP_OK ? dp_identity_judge(&it) : DP_IDENTITY_KNOWN;
        /* Won, too: the first server may have come back with another register. */
        if (!place->replaces && dp_identity_is_refused(verdict))
            st = dp_identity_refuse(&it, verdict, place->directory, err);
    }
    if (st == DP_OK)
        place->id = id->id;
    dp_client_close(&place->client);
    return st;
}

/* ---- watching */

static void report_lost(struct dp_registration *r, const struct dp_error *why)
{
    DP_ASSERT(pthread_mutex_lock(&r->lock) == 0);
    r->lost = *why;
    DP_ASSERT(pthread_mutex_unlock(&r->lock) == 0);
    r->options.lost(r->options.context);
}

static enum dp_status check_places(const struct dp_registration *r, const struct dp_stores *stores,
                                   struct dp_error *err)
{
    for (uint32_t i = 0; i < r->options.count; i++) {
        const struct registration_place *place = &r->place[i];
        const struct dp_identity_case it = {
            .found = {.id = place->id, .register_id = r->register_id, .opening = r->options.opening},
            .shard = place->shard,
            .stores = stores};
        enum dp_identity verdict = dp_identity_judge(&it);
        if (verdict == DP_IDENTITY_JOINS) /* it was registered: this register is an older copy */
            verdict = DP_IDENTITY_REGISTER_OLDER;
        if (dp_identity_is_refused(verdict))
            return dp_identity_refuse(&it, verdict, place->directory, err);
    }
    return DP_OK;
}

/* Of the first server, which may have been restored before this watcher asked it first. */
static enum dp_status check_generation(const struct dp_registration *r, const struct dp_client *client,
                                       struct dp_error *err)
{
    uint64_t generation, history;
    dp_client_generation(client, &generation, &history);
    return generation == r->generation && history == r->history
               ? DP_OK
               : refuse_mixed(&r->place[0], r->generation, r->history, "the first server is", generation,
                              history, err);
}

/* Whether the watcher asks again. A temporary lack of this process (memory, files) says nothing of its stores. */
static bool passes(enum dp_status st)
{
    enum dp_status_class class = dp_status_class((int)st);
    return class == DP_CLASS_NONE || class == DP_CLASS_RETRY || class == DP_CLASS_LOCAL;
}

/* The register has where this server is, or gets it. */
static enum dp_status keep_address(struct dp_registration *r, struct dp_client *client, struct dp_error *err)
{
    char bytes[DP_ADDRESS_BYTES_MAX], name[DP_ADDRESS_NAME_BYTES];
    size_t size = dp_address_encode(&r->address, bytes);
    struct dp_register_value value = {0};
    bool same, won = false;
    dp_address_name(r->options.first, name);
    enum dp_status st = dp_client_register_get(client, name, 0, 0, TRY_MS, &value, err);
    same = st == DP_OK && value.size == size && memcmp(value.bytes, bytes, size) == 0;
    if (st == DP_OK && !same)
        st = dp_client_register_store(client, r->options.first, name, value.version, bytes, size, TRY_MS,
                                      &won, NULL, err);
    dp_register_value_clear(&value);
    if (st == DP_OK && (same || won) && !r->told) {
        dp_log(DP_LOG_INFO, "the first server has this server's address: %s, control port %u",
               r->address.host, (unsigned)r->address.port[0]);
        r->told = true;
    }
    return st;
}

static void *watch(void *context)
{
    static const struct timespec short_of_memory = {.tv_nsec = 100000000};
    struct dp_registration *r = context;
    struct dp_client *client = NULL;
    struct dp_stores *stores = r->watched;
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    uint64_t version = 0, said_ns = 0, unread_ns = 0;
    while (!atomic_load(&r->stops) && passes(st)) {
        struct dp_register_value value = {0};
        st = connect_to(r, &client, &err);
        if (st == DP_OK)
            st = dp_client_register_get(client, DP_STORES_NAME, version, version == 0 ? 0 : WATCH_MS,
                                        WATCH_MS, &value, &err);
        if (st == DP_OK)
            st = check_generation(r, client, &err);
        if (st == DP_OK) {
            version = value.version;
            if (dp_stores_decode(value.bytes, value.size, r->options.total, stores, &err) != DP_OK) {
                dp_unread_stores_warn(&err, clock_ns(), &unread_ns);
            } else {
                stores->register_id = value.register_id;
                st = check_places(r, stores, &err);
            }
        }
        if (st == DP_OK && r->address.ports > 0)
            st = keep_address(r, client, &err);
        dp_register_value_clear(&value);
        if (dp_status_class((int)st) == DP_CLASS_RETRY && r->options.silent)
            r->options.silent(r->options.context);
        if (dp_status_class((int)st) != DP_CLASS_LOCAL)
            continue;
        if (clock_ns() - said_ns >= SAY_NS) {
            dp_log(DP_LOG_WARN, "cannot watch the register, and tries again: %s", err.text);
            said_ns = clock_ns();
        }
        (void)nanosleep(&short_of_memory, NULL);
    }
    if (!atomic_load(&r->stops))
        report_lost(r, &err);
    dp_client_close(&client);
    return NULL;
}

enum dp_status dp_registration_watch(struct dp_registration *r, const struct dp_address *address,
                                     struct dp_error *err)
{
    DP_ASSERT(!r->watches);
    if (r->options.read_only)
        return DP_OK;
    if (address)
        r->address = *address;
    r->register_id = r->place[0].stores->register_id;
    r->watched = calloc(1, sizeof *r->watched);
    if (!r->watched)
        return dp_fail(err, DP_NOMEM, "watching the register");
    r->watches = pthread_create(&r->watcher, NULL, watch, r) == 0;
    return r->watches ? DP_OK : dp_fail(err, DP_NOMEM, "starting the thread that watches the register");
}

uint64_t dp_registration_generation(struct dp_registration *r)
{
    DP_ASSERT(pthread_mutex_lock(&r->lock) == 0);
    uint64_t generation = r->generation;
    DP_ASSERT(pthread_mutex_unlock(&r->lock) == 0);
    return generation;
}

enum dp_status dp_registration_check(struct dp_registration *r, struct dp_error *err)
{
    DP_ASSERT(pthread_mutex_lock(&r->lock) == 0);
    if (r->lost.status != DP_OK)
        *err = r->lost;
    DP_ASSERT(pthread_mutex_unlock(&r->lock) == 0);
    return r->lost.status;
}

/* ---- beginning and end */

/* The register that a store there remembers; 0: none does. */
static uint64_t remembered(const char *directory, uint32_t count)
{
    char path[DIRECTORY_MAX + 16];
    struct dp_store_view *view = NULL;
    struct dp_error unheard;
    uint64_t known_to = 0;
    for (uint32_t i = 0; known_to == 0 && i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32, directory, i);
        if (dp_store_view_open(path, NULL, &view, &unheard) != DP_OK)
            continue; /* its opening says why */
        known_to = dp_store_view_own(view)->id.register_id;
        dp_store_view_close(&view);
    }
    return known_to;
}

enum dp_status dp_registration_may_begin(const char *directory, uint32_t count, bool replaces,
                                         struct dp_error *err)
{
    char path[DIRECTORY_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/%s", directory, DP_REGISTER_FILE);
    if (access(path, F_OK) == 0)
        return DP_OK;
    const char *loss = dp_identity_loss(DP_IDENTITY_REGISTER_OTHER);
    uint64_t known_to = remembered(directory, count);
    if (known_to != 0 && !replaces)
        return dp_fail(err, DP_GENERATION,
                       "%.200s: its file '%s' is missing, and its stores are known to a register (%08" PRIx32
                       "): bring it back; or, with --replace-store on `downpour run` or the server and with "
                       "no way back, start another: %s. Each server then needs that flag once",
                       directory, DP_REGISTER_FILE, DP_STORE_ID_SHORT(known_to), loss);
    if (replaces)
        dp_log(DP_LOG_WARN,
               "there is no file '%s': another one is begun (--replace-store): %s; there is no "
               "way back",
               path, loss);
    else
        dp_log(DP_LOG_INFO, "there is no file '%s': a new cluster is begun", path);
    return DP_OK;
}

enum dp_status dp_registration_new(const struct dp_registration_options *options,
                                   struct dp_registration **out, struct dp_error *err)
{
    *out = NULL;
    if (options->total > DP_STORES_SHARDS_MAX)
        return dp_fail(err, DP_ARGUMENT, "the cluster has %" PRIu32 " shards, at most %u are possible",
                       options->total, DP_STORES_SHARDS_MAX);
    struct dp_registration *r = calloc(1, sizeof *r + options->count * sizeof r->place[0]);
    if (!r)
        return dp_fail(err, DP_NOMEM, "registering the stores");
    r->options = *options;
    (void)snprintf(r->control, sizeof r->control, "%s", options->control);
    DP_ASSERT(pthread_mutex_init(&r->lock, NULL) == 0);
    for (uint32_t i = 0; i < options->count; i++)
        dp_unread_stores_init(&r->place[i].unread, options->first + i);
    for (uint32_t i = 0; i < options->count; i++) {
        r->place[i].all = r;
        r->place[i].shard = options->first + i;
        r->place[i].gate =
            (struct dp_store_gate){.admit = admit, .entered = entered, .says = says, .context = &r->place[i]};
        r->place[i].stores = calloc(1, sizeof *r->place[i].stores);
        if (!r->place[i].stores) {
            dp_registration_free(&r);
            return dp_fail(err, DP_NOMEM, "registering the stores");
        }
    }
    *out = r;
    return DP_OK;
}

const struct dp_store_gate *dp_registration_gate(struct dp_registration *r, uint32_t at,
                                                 const char *directory)
{
    DP_ASSERT(at < r->options.count);
    (void)snprintf(r->place[at].directory, sizeof r->place[at].directory, "%s", directory);
    return &r->place[at].gate;
}

void dp_registration_stop(struct dp_registration *r)
{
    DP_ASSERT(pthread_mutex_lock(&r->lock) == 0);
    atomic_store(&r->stops, true);
    DP_ASSERT(pthread_mutex_unlock(&r->lock) == 0);
}

void dp_registration_free(struct dp_registration **registration)
{
    struct dp_registration *r = *registration;
    *registration = NULL;
    if (!r)
        return;
    atomic_store(&r->stops, true);
    if (r->watches)
        DP_ASSERT(pthread_join(r->watcher, NULL) == 0);
    for (uint32_t i = 0; i < r->options.count; i++) {
        dp_client_close(&r->place[i].client);
        dp_unread_stores_clear(&r->place[i].unread);
        free(r->place[i].stores);
    }
    free(r->watched);
    DP_ASSERT(pthread_mutex_destroy(&r->lock) == 0);
    free(r);
}
