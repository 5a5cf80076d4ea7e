#include "tests/system/chaos.h"

#include "tests/lib/test.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEDGER_CLIENT DP_TESTS_BIN "/ledger_client"
#define ACTORS_MAX    (DP_CHAOS_SERVERS_MAX + DP_CHAOS_CLIENTS_MAX)
#define TEXT_BYTES    8192u
#define LATEST_MS     (240000u * DP_PATIENCE) /* for all to settle */

struct actor {
    struct dp_process *process; /* NULL: down */
    uint64_t start_at, go_on_at, kill_at, started_at;
    uint32_t life;
    bool draining, paused;
};

struct dp_chaos {
    struct dp_place *place;
    struct dp_chaos_options options;
    struct dp_proxy *proxy;
    uint64_t random, now, next_at, restore_at[ACTORS_MAX]; /* restore_at: of each of the proxy's lanes */
    uint32_t actors, confs;
    bool calm;                      /* no event; clients that ended stay so */
    struct actor actor[ACTORS_MAX]; /* servers, then clients */
    const char *file[DP_CHAOS_CLIENTS_MAX], *stop[DP_CHAOS_CLIENTS_MAX];
    char endpoint[DP_CHAOS_SERVERS_MAX * 4][64], direct[DP_CHAOS_SERVERS_MAX * 4][64];
    struct dp_chaos_sums sums;
};

static uint64_t draw(struct dp_chaos *chaos, uint64_t below)
{
    chaos->random = chaos->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (chaos->random >> 33) % below;
}

static uint32_t endpoints(const struct dp_chaos *chaos)
{
    return chaos->options.servers * chaos->options.shards;
}

static bool is_server(const struct dp_chaos *chaos, uint32_t i)
{
    return i < chaos->options.servers;
}

struct dp_chaos *dp_chaos_open(struct dp_place *place, const struct dp_chaos_options *options)
{
    const char *seed = getenv("DP_TEST_SEED");
    struct dp_chaos *chaos = calloc(1, sizeof *chaos);
    assert_non_null(chaos);
    assert_true(options->servers <= DP_CHAOS_SERVERS_MAX && options->clients <= DP_CHAOS_CLIENTS_MAX &&
                options->servers * options->shards <= 8);
    chaos->place = place;
    chaos->options = *options;
    chaos->random = seed ? strtoull(seed, NULL, 0) : dp_process_now_ms() % 1000000;
    print_message("chaos: DP_TEST_SEED=%" PRIu64 "\n", chaos->random);
    chaos->actors = options->servers + options->clients;
    while (options->conf[chaos->confs])
        chaos->confs++;
    if (options->proxied)
        chaos->proxy = dp_proxy_open();
    for (uint32_t i = 0; i < endpoints(chaos); i++) {
        uint32_t server = i / options->shards, shard = i % options->shards;
        uint32_t port = options->port + server * (1 + options->shards) + 1 + shard;
        (void)snprintf(chaos->direct[i], sizeof chaos->direct[i], "tcp://127.0.0.1:%" PRIu32, port);
        if (chaos->proxy)
            port = dp_proxy_lane(chaos->proxy, port);
        (void)snprintf(chaos->endpoint[i], sizeof chaos->endpoint[i], "tcp://127.0.0.1:%" PRIu32, port);
    }
    for (uint32_t i = 0; i < options->clients; i++) {
        chaos->file[i] = dp_place_path(place, "ledger-%u", (unsigned)i);
        chaos->stop[i] = dp_place_path(place, "ledger-%u.stop", (unsigned)i);
    }
    return chaos;
}

void dp_chaos_close(struct dp_chaos **chaos)
{
    dp_proxy_close(&(*chaos)->proxy);
    free(*chaos);
    *chaos = NULL;
}

const struct dp_chaos_sums *dp_chaos_sums(const struct dp_chaos *chaos)
{
    return &chaos->sums;
}

struct dp_proxy *dp_chaos_proxy(struct dp_chaos *chaos)
{
    return chaos->proxy;
}

/* ---- start and end */

static struct dp_process *start_client(struct dp_chaos *chaos, uint32_t client, uint32_t life)
{
    char number[16], life_text[16], retry[16];
    const char *e[8] = {NULL};
    for (uint32_t i = 0; i < endpoints(chaos); i++)
        e[i] = chaos->endpoint[i];
    (void)snprintf(number, sizeof number, "%" PRIu32, client);
    (void)snprintf(life_text, sizeof life_text, "%" PRIu32, chaos->options.same ? 0 : life);
    (void)snprintf(retry, sizeof retry, "%d", 50 + (int)draw(chaos, 400));
    return dp_place_start(chaos->place, LEDGER_CLIENT, chaos->file[client], number, life_text,
                          chaos->options.same ? "same" : "own", retry, "77", "1", e[0], e[1], e[2], e[3],
                          e[4], e[5], e[6], e[7], NULL);
}

static void start(struct dp_chaos *chaos, uint32_t i)
{
    struct actor *actor = &chaos->actor[i];
    char number[16];
    (void)snprintf(number, sizeof number, "%" PRIu32, i);
    if (is_server(chaos, i))
        actor->process =
            dp_place_start(chaos->place, "downpour-server", "--cluster",
                           chaos->options.conf[draw(chaos, chaos->confs)], "--server", number, "--new", NULL);
    else
        actor->process = start_client(chaos, i - chaos->options.servers, actor->life++);
    actor->started_at = chaos->now;
}

static void has_ended(struct dp_chaos *chaos, struct actor *actor)
{
    dp_place_drop(chaos->place, &actor->process);
    *actor = (struct actor){.life = actor->life, .start_at = chaos->now + draw(chaos, 150)};
}

/* One that was told to drain may be through, or have been told before it could listen. */
static bool may_end_by_itself(const struct actor *actor, int code)
{
    return actor->draining && (code == 0 || code == -SIGTERM);
}

static void kill_now(struct dp_chaos *chaos, struct actor *actor)
{
    dp_process_signal(actor->process, SIGKILL);
    int code = dp_process_wait(actor->process, DP_SOON_MS);
    dp_place_ended(actor->process, may_end_by_itself(actor, code) ? code : -SIGKILL);
    chaos->sums.kills++;
    has_ended(chaos, actor);
}

/* What became due for one of them. */
static void look_after(struct dp_chaos *chaos, uint32_t i)
{
    struct actor *actor = &chaos->actor[i];
    if (!actor->process) {
        if (chaos->now >= actor->start_at && (is_server(chaos, i) || !chaos->calm))
            start(chaos, i);
        return;
    }
    if (actor->paused && chaos->now >= actor->go_on_at) {
        dp_process_signal(actor->process, SIGCONT);
        actor->paused = false;
    }
    if (actor->kill_at && chaos->now >= actor->kill_at) {
        kill_now(chaos, actor);
        return;
    }
    int code = dp_process_wait(actor->process, 0);
    if (code == DP_PROCESS_RUNS)
        return;
    dp_place_ended(actor->process, may_end_by_itself(actor, code) ? code : DP_PROCESS_RUNS); /* or show why */
    has_ended(chaos, actor);
}

static void restore_lane(struct dp_chaos *chaos, uint32_t lane)
{
    chaos->restore_at[lane] = 0;
    for (int side = 0; side < 2; side++)
        dp_proxy_set(chaos->proxy, lane, (enum dp_proxy_side)side, DP_PROXY_PASS);
}

void dp_chaos_tick(struct dp_chaos *chaos)
{
    chaos->now = dp_process_now_ms();
    for (uint32_t i = 0; i < chaos->actors; i++)
        look_after(chaos, i);
    for (uint32_t i = 0; chaos->proxy && i < dp_proxy_lanes(chaos->proxy); i++)
        if (chaos->restore_at[i] && chaos->now >= chaos->restore_at[i])
            restore_lane(chaos, i);
    if (chaos->proxy)
        for (int turn = 0; turn < 64; turn++)
            dp_proxy_turn(chaos->proxy, turn == 0 ? 4 : 0);
    else
        dp_process_pause();
}

/* ---- events */

static void kill_server(struct dp_chaos *chaos, uint32_t i)
{
    struct actor *actor = &chaos->actor[i];
    if (!actor->process)
        return;
    chaos->sums.servers++;
    chaos->sums.starting += !actor->draining && !strstr(dp_process_err(actor->process), "ready:");
    chaos->sums.draining += actor->draining;
    kill_now(chaos, actor);
    /* Again and again, some of them before they serve. */
    if (draw(chaos, 3) == 0)
        chaos->next_at = actor->start_at + draw(chaos, 60);
}

static void kill_all_servers(struct dp_chaos *chaos)
{
    chaos->sums.both++;
    for (uint32_t i = 0; i < chaos->options.servers; i++)
        kill_server(chaos, i);
}

static void kill_client(struct dp_chaos *chaos)
{
    struct actor *actor =
        &chaos->actor[chaos->options.servers + (uint32_t)draw(chaos, chaos->options.clients)];
    if (!actor->process)
        return;
    chaos->sums.clients++;
    kill_now(chaos, actor);
}

static void drain_then_kill(struct dp_chaos *chaos, uint32_t i)
{
    struct actor *actor = &chaos->actor[i];
    if (!actor->process || actor->draining || actor->paused)
        return;
    dp_process_signal(actor->process, SIGTERM);
    actor->draining = true;
    actor->kill_at = chaos->now + 5 + draw(chaos, 200);
    chaos->sums.servers++;
    chaos->sums.draining++;
}

static void pause_one(struct dp_chaos *chaos)
{
    struct actor *actor = &chaos->actor[draw(chaos, chaos->actors)];
    if (!actor->process || actor->paused || actor->draining)
        return;
    dp_process_signal(actor->process, SIGSTOP);
    actor->paused = true;
    actor->go_on_at = chaos->now + 10 + draw(chaos, draw(chaos, 4) == 0 ? 2500 : 400);
    chaos->sums.pauses++;
}

static void spoil(struct dp_chaos *chaos)
{
    uint32_t lane = (uint32_t)draw(chaos, dp_proxy_lanes(chaos->proxy));
    enum dp_proxy_side side = (enum dp_proxy_side)draw(chaos, 2);
    chaos->sums.spoiled++;
    restore_lane(chaos, lane);
    chaos->restore_at[lane] = chaos->now + 1 + draw(chaos, 1000);
    switch (draw(chaos, 7)) {
    case 0:
        dp_proxy_cut(chaos->proxy, lane, false);
        break;
    case 1:
        dp_proxy_cut(chaos->proxy, lane, true);
        break;
    case 2:
        dp_proxy_orphan(chaos->proxy, lane);
        break;
    case 3:
        dp_proxy_set(chaos->proxy, lane, side, DP_PROXY_HOLD);
        break;
    case 4:
        dp_proxy_set(chaos->proxy, lane, DP_PROXY_REQUESTS, DP_PROXY_LOSE);
        break;
    default: /* the push is applied and answered, and nobody hears */
        dp_proxy_set(chaos->proxy, lane, DP_PROXY_REPLIES, DP_PROXY_LOSE);
    }
}

static void happen(struct dp_chaos *chaos)
{
    uint32_t server = (uint32_t)draw(chaos, chaos->options.servers);
    uint64_t what = draw(chaos, 100);
    chaos->next_at = chaos->now + draw(chaos, 2 * chaos->options.every_ms);
    if (chaos->proxy && draw(chaos, 2) == 0)
        spoil(chaos);
    else if (what < 35)
        kill_server(chaos, server);
    else if (what < 45)
        kill_all_servers(chaos);
    else if (what < 75)
        kill_client(chaos);
    else if (what < 85)
        drain_then_kill(chaos, server);
    else
        pause_one(chaos);
}

static void awake(struct dp_chaos *chaos)
{
    chaos->calm = false;
    for (uint32_t i = 0; i < chaos->options.clients; i++)
        (void)unlink(chaos->stop[i]);
}

void dp_chaos_storm(struct dp_chaos *chaos, uint32_t kills)
{
    uint64_t until = chaos->sums.kills + kills;
    uint64_t deadline = dp_process_now_ms() +
                        (uint64_t)DP_PATIENCE * (LATEST_MS + (uint64_t)kills * 20 * chaos->options.every_ms);
    awake(chaos);
    while (chaos->sums.kills < until) {
        dp_chaos_tick(chaos);
        if (chaos->now >= chaos->next_at)
            happen(chaos);
        if (chaos->now >= deadline)
            fail_msg("%" PRIu64 " kills in all that time, not %" PRIu64, chaos->sums.kills, until);
    }
}

void dp_chaos_kill(struct dp_chaos *chaos, uint32_t server)
{
    if (chaos->actor[server].process)
        kill_now(chaos, &chaos->actor[server]);
}

static uint64_t records(const struct dp_chaos *chaos)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < chaos->options.clients; i++) {
        struct stat file;
        bytes += stat(chaos->file[i], &file) == 0 ? (uint64_t)file.st_size : 0;
    }
    return bytes / sizeof(struct dp_ledger_record);
}

void dp_chaos_go_on(struct dp_chaos *chaos, uint32_t pushes)
{
    uint64_t deadline = dp_process_now_ms() + LATEST_MS, until = records(chaos) + 2 * (uint64_t)pushes;
    awake(chaos);
    while (records(chaos) < until) {
        dp_chaos_tick(chaos);
        if (chaos->now >= deadline)
            fail_msg("fewer than %" PRIu32 " pushes in all that time", pushes);
    }
}

/* ---- settle */

static bool is_settled(struct dp_chaos *chaos)
{
    for (uint32_t i = 0; i < chaos->actors; i++) {
        struct actor *actor = &chaos->actor[i];
        if (is_server(chaos, i) && (!actor->process || !strstr(dp_process_err(actor->process), "ready:")))
            return false;
        if (!is_server(chaos, i) && actor->process)
            return false;
    }
    return true;
}

void dp_chaos_settle(struct dp_chaos *chaos)
{
    uint64_t deadline = dp_process_now_ms() + LATEST_MS;
    for (uint32_t i = 0; chaos->proxy && i < dp_proxy_lanes(chaos->proxy); i++)
        restore_lane(chaos, i);
    chaos->calm = true;
    for (uint32_t i = 0; i < chaos->actors; i++) {
        struct actor *actor = &chaos->actor[i];
        uint32_t client = i - chaos->options.servers;
        actor->go_on_at = 0;
        if (is_server(chaos, i))
            continue;
        (void)dp_place_file(chaos->place, dp_place_text(chaos->place, "ledger-%u.stop", (unsigned)client), "",
                            0);
        /* It may have left something unanswered. */
        if (!actor->process && chaos->options.same && actor->life > 0)
            start(chaos, i);
        actor->draining = true;
    }
    while (!is_settled(chaos)) {
        dp_chaos_tick(chaos);
        for (uint32_t i = 0; i < chaos->actors && chaos->now >= deadline; i++)
            if (chaos->actor[i].process && !is_server(chaos, i))
                dp_place_ended(chaos->actor[i].process, 0); /* shows what it said */
        if (chaos->now >= deadline)
            fail_msg("not all servers are ready");
    }
}

static void check_once(struct dp_chaos *chaos, const struct dp_ledger_account *accounts, uint32_t count,
                       struct dp_ledger_sums *sums)
{
    const char *e[DP_CHAOS_SERVERS_MAX * 4];
    char *text = malloc(TEXT_BYTES);
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    for (uint32_t i = 0; i < endpoints(chaos); i++)
        e[i] = chaos->direct[i];
    const struct dp_client_options options = {.name = "check",
                                              .cluster = DP_CHAOS_CLUSTER,
                                              .generation = 1,
                                              .shards = e,
                                              .shard_count = endpoints(chaos),
                                              .open_timeout_ms = DP_SOON_MS * DP_PATIENCE};
    assert_non_null(text);
    if (dp_client_open(&options, &client, &err) != DP_OK)
        fail_msg("%s", err.text);
    bool good = dp_ledger_check(client, accounts, count, sums, text, TEXT_BYTES);
    dp_client_close(&client);
    if (!good)
        print_error("%s", text);
    free(text);
    if (!good)
        fail_msg("the rows are not what the ledger says");
}

void dp_chaos_compare(struct dp_chaos *chaos, struct dp_ledger_sums *sums)
{
    struct dp_ledger_account *accounts = NULL;
    uint32_t count = 0;
    dp_chaos_settle(chaos);
    for (uint32_t i = 0; i < chaos->options.clients; i++)
        assert_true(dp_ledger_read(chaos->file[i], i, &accounts, &count));
    check_once(chaos, accounts, count, sums);
    for (uint32_t i = 0; i < chaos->options.servers; i++)
        dp_process_signal(chaos->actor[i].process, SIGTERM);
    for (uint32_t i = 0; i < chaos->options.servers; i++)
        dp_place_stops_cleanly(chaos->actor[i].process);
    for (uint32_t i = 0; i < chaos->options.servers; i++)
        has_ended(chaos, &chaos->actor[i]);
    (void)dp_place_digest(chaos->place, dp_place_path(chaos->place, "c-0"),
                          chaos->options.servers > 1 ? dp_place_path(chaos->place, "c-1") : NULL);
    dp_chaos_settle(chaos);
    check_once(chaos, accounts, count, sums);
    free(accounts);
}
