#include "deploy/checkpoint/dead_orders.h"

#include "common/client/checkpoint.h"
#include "common/model/mix.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/paths.h"

#include <stdlib.h>
#include <sys/random.h>

#define ASK_MS     5000u
#define UPPER_HALF (UINT64_MAX << 32)

static uint64_t upper_half(uint64_t cluster)
{
    return dp_mix(cluster) & UPPER_HALF;
}

uint64_t dp_dead_orders_draw(uint64_t cluster)
{
    uint32_t drawn;
    DP_ASSERT(getrandom(&drawn, sizeof drawn, 0) == (ssize_t)sizeof drawn);
    return upper_half(cluster) | drawn | 1;
}

static enum dp_status see_name(void *context, const char *name, struct dp_error *err)
{
    struct dp_dead_orders *dead = context;
    uint64_t order;
    (void)err;
    if (dead->count < DP_DEAD_ORDERS_MAX && dp_checkpoint_name_order(name, &order) &&
        (order & UPPER_HALF) == upper_half(dead->cluster))
        dead->order[dead->count++] = order;
    return DP_OK;
}

/* Shards that know nothing of it say so. */
static void abandon(struct dp_client *client, uint64_t order, struct dp_checkpoint_ask *asks,
                    struct dp_checkpoint_answer *answers)
{
    struct dp_error ignored = {0};
    uint32_t shards = dp_client_shards(client);
    for (uint32_t i = 0; i < shards; i++)
        asks[i] = (struct dp_checkpoint_ask){.action = DP_CHECKPOINT_ABANDON, .order = order};
    ignored.status =
        dp_client_checkpoint(client, asks, answers, ASK_MS, &ignored); /* the next order meets it, too */
    dp_client_checkpoint_clear(answers, shards);
}

enum dp_status dp_dead_orders_end(struct dp_client *client, uint64_t cluster, const char *directory,
                                  struct dp_dead_orders *out, struct dp_error *err)
{
    uint32_t shards = dp_client_shards(client);
    struct dp_checkpoint_ask *asks = calloc(shards, sizeof *asks);
    struct dp_checkpoint_answer *answers = calloc(shards, sizeof *answers);
    *out = (struct dp_dead_orders){.cluster = cluster};
    enum dp_status st = asks && answers ? dp_checkpoint_visit(directory, see_name, out, err)
                                        : dp_fail(err, DP_NOMEM, "no memory for orders");
    for (uint32_t i = 0; st == DP_OK && i < out->count; i++)
        abandon(client, out->order[i], asks, answers);
    free(answers);
    free(asks);
    return st;
}

enum dp_status dp_dead_orders_sweep(const struct dp_dead_orders *orders, const char *directory,
                                    struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < orders->count; i++)
        st = dp_checkpoint_abandon(directory, orders->order[i], err);
    return st;
}
