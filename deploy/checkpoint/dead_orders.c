#include "deploy/checkpoint/dead_orders.h"

#include "common/client/checkpoint.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/paths.h"

#include <stdlib.h>

#define ASK_MS 5000u

struct dead_orders_found {
    uint64_t order[DP_DEAD_ORDERS_MAX];
    uint32_t count;
};

static enum dp_status see_name(void *context, const char *name, struct dp_error *err)
{
    struct dead_orders_found *found = context;
    uint64_t order;
    (void)err;
    if (found->count < DP_DEAD_ORDERS_MAX && dp_checkpoint_name_order(name, &order))
        found->order[found->count++] = order;
    return DP_OK;
}

/* Whether all shards answered. */
static bool ask(struct dp_client *client, uint64_t order, enum dp_checkpoint_action action,
                struct dp_checkpoint_ask *asks, struct dp_checkpoint_answer *answers)
{
    struct dp_error ignored;
    uint32_t shards = dp_client_shards(client);
    for (uint32_t i = 0; i < shards; i++)
        asks[i] = (struct dp_checkpoint_ask){.action = action, .order = order};
    dp_client_checkpoint_clear(answers, shards);
    return dp_client_checkpoint(client, asks, answers, ASK_MS, &ignored) == DP_OK;
}

/* Another cluster's order may be in the directory, too: of that one no shard here knows. */
static bool is_known(struct dp_client *client, uint64_t order, struct dp_checkpoint_ask *asks,
                     struct dp_checkpoint_answer *answers)
{
    bool known = false;
    if (!ask(client, order, DP_CHECKPOINT_LOOK, asks, answers))
        return false;
    for (uint32_t i = 0; i < dp_client_shards(client); i++)
        known = known || answers[i].state.stage != DP_CHECKPOINT_NONE;
    return known;
}

enum dp_status dp_dead_orders_end(struct dp_client *client, const char *directory, struct dp_dead_orders *out,
                                  struct dp_error *err)
{
    struct dead_orders_found found = {.count = 0};
    uint32_t shards = dp_client_shards(client);
    struct dp_checkpoint_ask *asks = calloc(shards, sizeof *asks);
    struct dp_checkpoint_answer *answers = calloc(shards, sizeof *answers);
    *out = (struct dp_dead_orders){.count = 0};
    enum dp_status st = asks && answers ? dp_checkpoint_visit(directory, see_name, &found, err)
                                        : dp_fail(err, DP_NOMEM, "no memory for orders");
    for (uint32_t i = 0; st == DP_OK && i < found.count; i++)
        if (is_known(client, found.order[i], asks, answers) &&
            ask(client, found.order[i], DP_CHECKPOINT_ABANDON, asks, answers))
            out->order[out->count++] = found.order[i];
    if (answers)
        dp_client_checkpoint_clear(answers, shards);
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
