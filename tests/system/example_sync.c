/* A program of a user's own whose copies train together, in step: least squares by synchronous SGD, each copy on examples of its own.
 *     example_sync RANK MEMBERS CLUSTER GENERATION tcp://CONTROL tcp://SHARD...      (the first server's; all shards, in order)
 * A copy that was killed is started again by the same line: it goes on where it was, while the others wait. All print the same
 * weights, to the last bit, whoever was late or killed. */
#include "common/client/downpour.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 600, FEATURES = 8, TIMEOUT_MS = 10000, RUN = 1 };

static struct dp_error err;

static void must(enum dp_status st)
{
    if (st != DP_OK)
        exit(fprintf(stderr, "example: %s\n", err.text) > 0 ? 2 : 3);
}

/* Of (w.x - y)^2 / 2 for the copy's example of a step; the true weights are 1, 2, 3, ..., and y has noise. */
static void compute(uint64_t step, uint32_t rank, const float *w, float *gradient)
{
    unsigned seed = (unsigned)step * 1024 + rank;
    float x[FEATURES], miss = 0.1f * (float)rand_r(&seed) / (float)RAND_MAX - 0.05f;
    for (int f = 0; f < FEATURES; f++)
        miss += (w[f] - (float)(f + 1)) * (x[f] = (float)rand_r(&seed) / (float)RAND_MAX);
    for (int f = 0; f < FEATURES; f++)
        gradient[f] = miss * x[f];
}

static void await(struct dp_client *client, struct dp_ticket *ticket)
{
    enum dp_status st;
    while ((st = dp_client_wait(client, ticket, 2000, NULL, &err)) == DP_TIMEOUT &&
           err.wait.reason == DP_WAIT_STEP)
        (void)fprintf(stderr, "example: %s\n", err.text); /* others have to come first */
    must(st);
}

static void train(struct dp_client *client, const struct dp_join *join, float *w)
{
    const struct dp_table_spec spec = {
        .name = "sync", .dim = 1, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    /* Push numbers of this run and rank, whichever process pushes: what is pushed again is applied once. */
    struct dp_push_options options = {.rate = 0.3f, .in_step = true, .examples = 1};
    options.stream = UINT64_C(1) << 63 | (uint64_t)RUN << 32 | (join->rank + 1);
    uint64_t key[FEATURES] = {1, 2, 3, 4, 5, 6, 7, 8}, done[(STEPS + 63) / 64], step = 0;
    float gradient[FEATURES];
    struct dp_client_table *table;
    struct dp_keys *keys;
    struct dp_ticket ticket;
    must(dp_keys_new(&keys, &err));
    must(dp_keys_set(keys, key, FEATURES, &err));
    must(dp_client_table(client, &spec, TIMEOUT_MS, &table, &err));
    must(dp_client_join(client, join, TIMEOUT_MS, &err));
    must(dp_client_pushed(client, options.stream, 0, STEPS, done, TIMEOUT_MS, &err));
    while (step < STEPS && (done[step / 64] >> step % 64 & 1))
        step++; /* an earlier process in this place pushed it */
    for (;; step++) {
        const struct dp_pull_part pull = {table, keys, w};
        const struct dp_push_part push = {table, keys, gradient};
        must(dp_client_pull_step(client, step, &pull, 1, NULL, TIMEOUT_MS, &ticket, &err));
        await(client, &ticket);
        if (step == STEPS)
            break;
        compute(step, join->rank, w, gradient);
        options.number = options.step = step;
        must(dp_client_push(client, &options, &push, 1, TIMEOUT_MS, &ticket, &err));
        await(client, &ticket);
        if (step % 100 == 0)
            (void)fprintf(stderr, "example: step %d is pushed\n", (int)step);
    }
    must(dp_client_leave(client, STEPS, TIMEOUT_MS, &err));
    dp_keys_free(&keys);
}

int main(int argc, char **argv)
{
    struct dp_client_options options = {.name = "example"};
    struct dp_join join = {.run = RUN, .mode = DP_SYNC};
    struct dp_client *client;
    float w[FEATURES];
    if (argc < 7)
        return 2;
    join.rank = (uint32_t)atoi(argv[1]);
    join.members = (uint32_t)atoi(argv[2]);
    options.cluster = strtoull(argv[3], NULL, 0);
    options.generation = strtoull(argv[4], NULL, 0);
    options.control = argv[5];
    options.shards = (const char *const *)(argv + 6);
    options.shard_count = (uint32_t)argc - 6;
    must(dp_client_open(&options, &client, &err));
    train(client, &join, w);
    dp_client_close(&client);
    for (int f = 0; f < FEATURES; f++)
        printf("%a%c", (double)w[f], f + 1 < FEATURES ? ' ' : '\n');
    return 0;
}
