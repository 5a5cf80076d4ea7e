#include "server/unread_stores.h"

#include "common/base/log.h"

#include <inttypes.h>

#define AGAIN_NS UINT64_C(600000000000)

#define REMEDY                                                                                               \
    "Restart every server once with --replace-store: the value is written again, and the stores keep their " \
    "rows; that a store was lost or exchanged before is not noticed"

void dp_unread_stores_init(struct dp_unread_stores *unread, uint32_t shard)
{
    *unread = (struct dp_unread_stores){.shard = shard};
    DP_ASSERT(pthread_mutex_init(&unread->lock, NULL) == 0);
}

void dp_unread_stores_clear(struct dp_unread_stores *unread)
{
    DP_ASSERT(pthread_mutex_destroy(&unread->lock) == 0);
}

void dp_unread_stores_put(struct dp_unread_stores *unread, const struct dp_error *why)
{
    struct dp_error said = {0};
    if (why)
        (void)dp_fail_wait(&said, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_REGISTER},
                           "shard %" PRIu32
                           " waits, since it cannot check that its store is the right one: %.180s. " REMEDY,
                           unread->shard, why->text);
    DP_ASSERT(pthread_mutex_lock(&unread->lock) == 0);
    bool is_news = why && unread->why.status == DP_OK;
    unread->why = said;
    DP_ASSERT(pthread_mutex_unlock(&unread->lock) == 0);
    if (is_news)
        dp_log(DP_LOG_WARN, "%s", said.text);
}

bool dp_unread_stores_says(struct dp_unread_stores *unread, struct dp_error *err)
{
    DP_ASSERT(pthread_mutex_lock(&unread->lock) == 0);
    bool waits = unread->why.status != DP_OK;
    if (waits)
        *err = unread->why;
    DP_ASSERT(pthread_mutex_unlock(&unread->lock) == 0);
    return waits;
}

void dp_unread_stores_warn(const struct dp_error *why, uint64_t now_ns, uint64_t *said_ns)
{
    if (*said_ns != 0 && now_ns - *said_ns < AGAIN_NS)
        return;
    dp_log(
        DP_LOG_WARN,
        "this server continues, but does not see whether another copy of a store here is opened: %s. " REMEDY,
        why->text);
    *said_ns = now_ns;
}
