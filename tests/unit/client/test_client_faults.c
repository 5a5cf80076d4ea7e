/* client against a bad network: whatever is lost, doubled, delayed, refused or forgotten, each shard applies
 * each push once and in order, and pulls show at least what was pushed before them, also those of a member that shards hold. Method    Integer
 * gradients, so that sums are exact in any order; many seeds, each with its own mix of faults; the rows at
 * the end must equal the sums. A seed that fails is printed: DP_TEST_SEED=n runs it alone.        */
#include "tests/lib/test.h"

#include "common/client/client_over.h"
#include "common/model/mix.h"
#include "tests/lib/fake_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 500, UNIVERSE = 60, DIM = 3, STEPS = 40, ROWS_MAX = 30, FLIGHT = 6, WAIT_MS = 600000 };

struct step { /* one pull or push under way */
    struct dp_ticket ticket;
    struct dp_keys *keys;
    uint64_t key[ROWS_MAX];
    size_t n;
    bool pull;
    float value[ROWS_MAX][DIM], least[ROWS_MAX][DIM];
    struct dp_pulled_at at[DP_FAKE_SHARDS_MAX];
};

struct run {
    struct dp_fake_net *net;
    struct dp_client *client;
    struct dp_client_table *table;
    float expected[UNIVERSE][DIM];
    struct step step[FLIGHT];
    uint64_t seed;
    uint32_t pushes;
    bool member;
};

#define MUST(run, call)                                                                                      \
    do {                                                                                                     \
        struct dp_error err = {0};                                                                           \
        if ((call) != DP_OK)                                                                                 \
            fail_msg("seed %llu: %s", (unsigned long long)(run)->seed, err.text);                            \
    } while (0)

static void check_that(const struct run *run, bool holds, const char *what)
{
    if (!holds)
        fail_msg("seed %llu: %s", (unsigned long long)run->seed, what);
}

static void start(struct run *run, struct step *step)
{
    step->n = dp_fake_net_random(run->net, ROWS_MAX + 1);
    step->pull = dp_fake_net_random(run->net, 2) == 0;
    for (size_t i = 0; i < step->n; i++) {
        step->key[i] = dp_fake_net_random(run->net, UNIVERSE);
        for (int c = 0; c < DIM; c++)
            step->value[i][c] = step->pull ? -1 : (float)dp_fake_net_random(run->net, 4);
    }
    MUST(run, dp_keys_set(step->keys, step->key, step->n, &err));
    if (step->pull) {
        const struct dp_pull_part part = {run->table, step->keys, step->value[0]};
        for (size_t i = 0; i < step->n; i++)
            memcpy(step->least[i], run->expected[step->key[i]], sizeof step->least[i]);
        if (run->member && dp_fake_net_random(run->net, 4))
            MUST(run, dp_client_pull_step(run->client, run->pushes, &part, 1, step->at, WAIT_MS,
                                          &step->ticket, &err));
        else
            MUST(run, dp_client_pull(run->client, &part, 1, step->at, WAIT_MS, &step->ticket, &err));
        return;
    }
    const struct dp_push_part part = {run->table, step->keys, step->value[0]};
    const struct dp_push_options options = {.rate = 0.1f, .in_step = run->member, .step = run->pushes};
    MUST(run, dp_client_push(run->client, &options, &part, 1, WAIT_MS, &step->ticket, &err));
    for (size_t i = 0; i < step->n; i++) {
        for (int c = 0; c < DIM; c++) {
            run->expected[step->key[i]][c] += step->value[i][c];
            step->value[i][c] = -1000;
        }
    }
    run->pushes++;
}

static void finish(struct run *run, struct step *step)
{
    if (step->ticket.id == 0)
        return;
    MUST(run, dp_client_wait(run->client, &step->ticket, WAIT_MS, NULL, &err));
    for (size_t i = 0; step->pull && i < step->n; i++) {
        for (int c = 0; c < DIM; c++) {
            float now = run->expected[step->key[i]][c];
            check_that(run, step->value[i][c] >= step->least[i][c], "a pull overtook a push before it");
            check_that(run, step->value[i][c] <= now, "a pull shows more than was pushed");
        }
    }
}

static void compare(const struct run *run)
{
    uint32_t id = dp_table_id("t");
    for (uint64_t k = 0; k < UNIVERSE; k++) {
        const float *row = dp_fake_net_row(run->net, id, dp_mix(k));
        for (int c = 0; c < DIM; c++)
            check_that(run, (row ? row[c] : 0) == run->expected[k][c], "rows differ from the sums");
    }
    for (uint32_t s = 0; s < run->net->shards; s++) {
        const struct dp_fake_shard *shard = &run->net->shard[s];
        check_that(run, shard->pushes == run->pushes, "not every push reached every shard once");
        for (uint32_t i = 0; i < shard->pushes; i++) {
            check_that(run, shard->push[i].number == i, "pushes were applied in another order");
            check_that(run, shard->push[i].stream == 900, "another stream than the given one");
            check_that(run, i == 0 || shard->push[i].sequence > shard->push[i - 1].sequence,
                       "sequence numbers do not ascend");
        }
    }
}

static uint32_t mostly_none(struct run *run, uint32_t most)
{
    return dp_fake_net_random(run->net, 2) ? 0 : (uint32_t)dp_fake_net_random(run->net, most + 1);
}

static void play(uint64_t seed)
{
    static const char *const endpoints[] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"};
    static struct run run;
    run = (struct run){.seed = seed, .net = dp_fake_net_new(seed, (uint32_t)(1 + seed % 8))};
    struct dp_fake_faults faults = {.lose = mostly_none(&run, 200),
                                    .twice = mostly_none(&run, 300),
                                    .slow = mostly_none(&run, 500),
                                    .again = mostly_none(&run, 200),
                                    .order = mostly_none(&run, 100),
                                    .forget = mostly_none(&run, 50),
                                    .stopping = mostly_none(&run, 100),
                                    .cut = mostly_none(&run, 200),
                                    .full = mostly_none(&run, 200),
                                    .hold = mostly_none(&run, 1000),
                                    .hold_ms = 1 + (uint32_t)dp_fake_net_random(run.net, 5000),
                                    .slow_ms = 1 + (uint32_t)dp_fake_net_random(run.net, 300)};
    const struct dp_client_options options = {.name = "faults",
                                              .cluster = run.net->cluster,
                                              .generation = run.net->generation,
                                              .shards = endpoints,
                                              .shard_count = run.net->shards,
                                              .control = "control",
                                              .window = 1 + (uint32_t)dp_fake_net_random(run.net, 8),
                                              .retry_ms = 50,
                                              .open_timeout_ms = WAIT_MS,
                                              .bf16_values = seed % 3 == 0};
    const struct dp_table_spec spec = {
        .name = "t", .dim = DIM, .seed = 1, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    struct dp_transport transport = dp_fake_net_transport(run.net);
    struct dp_clock clock = dp_fake_net_clock(run.net);
    run.net->faults = faults;
    MUST(&run, dp_client_open_over(&options, &transport, &clock, 1 + seed, &run.client, &err));
    const struct dp_join join = {.run = 1, .members = 1, .mode = DP_SSP, .slack = 1};
    run.member = dp_fake_net_random(run.net, 2);
    if (run.member)
        MUST(&run, dp_client_join(run.client, &join, WAIT_MS, &err));
    MUST(&run, dp_client_table(run.client, &spec, WAIT_MS, &run.table, &err));
    for (int i = 0; i < FLIGHT; i++)
        MUST(&run, dp_keys_new(&run.step[i].keys, &err));
    for (int i = 0; i < STEPS; i++) {
        struct step *step = &run.step[dp_fake_net_random(run.net, FLIGHT)];
        finish(&run, step);
        start(&run, step);
    }
    for (int i = 0; i < FLIGHT; i++)
        finish(&run, &run.step[i]);
    dp_client_close(&run.client);
    assert_true(run.net->closed);
    compare(&run);
    for (int i = 0; i < FLIGHT; i++)
        dp_keys_free(&run.step[i].keys);
    dp_fake_net_free(&run.net);
}

static void every_push_counts_once_and_in_order(void **state)
{
    const char *one = getenv("DP_TEST_SEED"), *many = getenv("DP_TEST_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS;
    if (one) {
        play(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++)
        play(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_push_counts_once_and_in_order)};
    return cmocka_run_group_tests_name("client_faults", tests, NULL, NULL);
}
