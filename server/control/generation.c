#include "server/control/generation.h"

#include "common/base/bytes.h"
#include "common/base/log.h"

#include <inttypes.h>

#define FIRST       1u
#define VALUE_BYTES 16u
/* Each restore adds 1. Builds before the register checked what is set accepted any number. */
#define NUMBER_MAX UINT32_MAX

/* Number 0: the register has none. */
static struct dp_control_generation kept(const struct dp_control_register *values,
                                         struct dp_control_register_entry *entry)
{
    struct dp_error unread;
    *entry = (struct dp_control_register_entry){0};
    if (!values || dp_control_register_get(values, DP_CONTROL_GENERATION_NAME, entry, &unread) != DP_OK ||
        entry->size != VALUE_BYTES)
        return (struct dp_control_generation){0};
    const char *bytes = entry->bytes;
    const struct dp_control_generation is = {dp_load_u64le(bytes), dp_load_u64le(bytes + 8)};
    if (is.number <= NUMBER_MAX)
        return is;
    dp_log(DP_LOG_WARN,
           "the register's value '" DP_CONTROL_GENERATION_NAME "' is %" PRIu64
           ", which no number of restores comes to: it is ignored",
           is.number);
    return (struct dp_control_generation){0};
}

static void keep(struct dp_control_register *values, uint64_t version, struct dp_control_generation own)
{
    char bytes[VALUE_BYTES];
    struct dp_control_register_entry entry;
    struct dp_error err = {0};
    dp_store_u64le(bytes, own.number);
    dp_store_u64le(bytes + 8, own.history);
    const struct dp_control_register_change change = {.name = DP_CONTROL_GENERATION_NAME,
                                                      .expected = version,
                                                      .nonce = own.history ? own.history : 1,
                                                      .bytes = bytes,
                                                      .size = sizeof bytes};
    if (dp_control_register_set(values, &change, &entry, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "the register does not keep generation %" PRIu64 ": %s; the stores do",
               own.number, err.text);
}

struct dp_control_generation dp_control_generation_settle(struct dp_control_register *values,
                                                          struct dp_control_generation found)
{
    struct dp_control_register_entry entry;
    struct dp_control_generation before = kept(values, &entry);
    if (found.number == 0 && before.number != 0)
        return before;
    if (found.number == 0)
        return (struct dp_control_generation){.number = FIRST};
    bool differs = before.number != found.number || before.history != found.history;
    /* A cluster that was never restored needs no value. */
    if (values && differs && (found.history != 0 || before.number != 0))
        keep(values, entry.version, found);
    return found;
}

enum dp_status dp_control_generation_check(const struct dp_control_generation *own,
                                           const struct dp_request *request, struct dp_error *err)
{
    bool names_none = request->generation == 0 && request->history == 0;
    bool looks = request->kind == DP_REQUEST_HELLO || request->kind == DP_REQUEST_STATUS ||
                 request->kind == DP_REQUEST_NOTES_GET;
    if (names_none && looks)
        return DP_OK;
    if (own->number == 0)
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_OPENING},
                            "this server opens its stores, and does not know its generation yet");
    if (request->generation == own->number && request->history == own->history)
        return DP_OK;
    return dp_fail(err, DP_GENERATION,
                   "this server is at generation %" PRIu64 " (history %016" PRIx64
                   "), the request at %" PRIu64 " (history %016" PRIx64
                   "): the cluster was restored since this client opened; open it again",
                   own->number, own->history, request->generation, request->history);
}
