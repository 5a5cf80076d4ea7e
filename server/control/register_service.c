#include "server/control/register_service.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

struct waiter {
    struct dp_peer peer;
    uint64_t session, id, above, until_ns, silent_ns;
    char name[DP_NOTE_NAME_MAX + 1];
};

struct dp_control_register_service {
    struct dp_control_register_service_options options;
    uint32_t count;
    size_t room;
    struct waiter *waiter; /* in no order */
};

enum dp_status dp_control_register_service_new(const struct dp_control_register_service_options *options,
                                               struct dp_control_register_service **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for the register's service");
    (*out)->options = *options;
    return DP_OK;
}

void dp_control_register_service_free(struct dp_control_register_service **service)
{
    if (*service)
        free((*service)->waiter);
    free(*service);
    *service = NULL;
}

static enum dp_status answer(const struct dp_control_register_service *service, const struct dp_peer *to,
                             uint64_t session, uint64_t id, const struct dp_control_register_entry *entry,
                             struct dp_error *err)
{
    struct dp_frame frame = dp_frame_copy(entry->bytes, entry->size);
    if (!frame.data)
        return dp_fail(err, DP_NOMEM, "no memory for a register value of %zu bytes", entry->size);
    struct dp_reply reply = {.kind = DP_REPLY_REGISTER,
                             .id = id,
                             .session = session,
                             .version = entry->version,
                             .register_id = dp_control_register_id(service->options.values),
                             .won = entry->won};
    service->options.answer(service->options.context, to, &reply, &frame, 1);
    return DP_OK;
}

/* ---- waiters */

static void drop(struct dp_control_register_service *service, uint32_t at)
{
    DP_ASSERT(at < service->count && service->count <= service->room);
    service->waiter[at] = service->waiter[--service->count];
}

/* Answers the waiter with the current value, or with the reason why there is none. */
static void answer_waiter(const struct dp_control_register_service *service, const struct waiter *waiter)
{
    struct dp_control_register_entry entry;
    struct dp_error err = {0};
    enum dp_status st = dp_control_register_get(service->options.values, waiter->name, &entry, &err);
    if (st == DP_OK)
        st = answer(service, &waiter->peer, waiter->session, waiter->id, &entry, &err);
    if (st != DP_OK) {
        struct dp_reply reply = {.kind = DP_REPLY_NONE,
                                 .id = waiter->id,
                                 .session = waiter->session,
                                 .status = dp_status_answered(st)};
        (void)snprintf(reply.reason, sizeof reply.reason, "%s", err.text);
        service->options.answer(service->options.context, &waiter->peer, &reply, NULL, 0);
    }
}

/* After a set: answers the waiters whose value is above the version they named, or was dropped. */
static void wake(struct dp_control_register_service *service)
{
    for (uint32_t i = service->count; i-- > 0;) {
        const struct waiter *waiter = &service->waiter[i];
        struct dp_control_register_entry entry;
        enum dp_status st = dp_control_register_get(service->options.values, waiter->name, &entry, NULL);
        if (st == DP_OK && entry.version <= waiter->above)
            continue;
        answer_waiter(service, waiter);
        drop(service, i);
    }
}

static enum dp_status keep(struct dp_control_register_service *service, uint64_t now_ns,
                           const struct dp_peer *from, const struct dp_request *request, struct dp_error *err)
{
    uint32_t at = 0;
    while (at < service->count &&
           (service->waiter[at].session != request->session || service->waiter[at].id != request->id))
        at++;
    if (at == DP_REGISTER_WAITERS_MAX)
        return dp_fail(err, DP_FULL, "'%s': %u other requests already wait for register values",
                       request->name, DP_REGISTER_WAITERS_MAX);
    if (!dp_array_reserve(&service->waiter, at, &service->room, sizeof service->waiter[0]))
        return dp_fail(err, DP_NOMEM, "'%s': no memory for a waiting request", request->name);
    service->count += at == service->count;
    service->waiter[at] = (struct waiter){.peer = *from,
                                          .session = request->session,
                                          .id = request->id,
                                          .above = request->version,
                                          .until_ns = now_ns + request->wait_ms * MS_NS,
                                          .silent_ns = now_ns + DP_REGISTER_SILENT_NS};
    memcpy(service->waiter[at].name, request->name, sizeof request->name);
    DP_ASSERT(service->count <= service->room && service->count <= DP_REGISTER_WAITERS_MAX);
    DP_ASSERT(service->waiter[at].until_ns > now_ns && service->waiter[at].silent_ns > now_ns);
    return DP_OK;
}

static enum dp_status get(struct dp_control_register_service *service, uint64_t now_ns,
                          const struct dp_peer *from, const struct dp_request *request, struct dp_error *err)
{
    struct dp_control_register_entry entry;
    enum dp_status st = dp_control_register_get(service->options.values, request->name, &entry, err);
    if (st != DP_OK)
        return st;
    if (entry.version <= request->version && request->wait_ms > 0)
        return keep(service, now_ns, from, request, err);
    return answer(service, from, request->session, request->id, &entry, err);
}

static enum dp_status check(const struct dp_control_register_service *service,
                            const struct dp_request *request, struct dp_error *err)
{
    struct dp_control_register_entry now;
    if (!service->options.check ||
        dp_control_register_get(service->options.values, request->name, &now, NULL) != DP_OK ||
        now.version != request->version)
        return DP_OK;
    const struct dp_control_names_set set = {.name = request->name,
                                             .server_shard = request->server_shard,
                                             .expected = request->version,
                                             .before = now.bytes,
                                             .before_size = now.size,
                                             .bytes = request->note,
                                             .size = request->note_bytes};
    return service->options.check(service->options.context, &set, err);
}

static enum dp_status set(struct dp_control_register_service *service, const struct dp_peer *from,
                          const struct dp_request *request, struct dp_error *err)
{
    const struct dp_control_register_change change = {.name = request->name,
                                                      .expected = request->version,
                                                      .nonce = request->nonce,
                                                      .bytes = request->note,
                                                      .size = request->note_bytes};
    struct dp_control_register_entry entry;
    enum dp_status st = check(service, request, err);
    if (st == DP_OK)
        st = dp_control_register_set(service->options.values, &change, &entry, err);
    if (st != DP_OK)
        return st;
    st = answer(service, from, request->session, request->id, &entry, err);
    wake(service);
    return st;
}

static enum dp_status copy(const struct dp_control_register_service *service, const struct dp_peer *to,
                           const struct dp_request *request, struct dp_error *err)
{
    const struct dp_control_register *values = service->options.values;
    struct dp_reply reply = {.kind = DP_REPLY_REGISTER,
                             .id = request->id,
                             .session = request->session,
                             .register_id = dp_control_register_id(values),
                             .whole = true};
    void *bytes = NULL;
    size_t size = 0;
    enum dp_status st = dp_control_register_copy(values, &bytes, &size, &reply.version, err);
    struct dp_frame frame = st == DP_OK ? dp_frame_copy(bytes, size) : (struct dp_frame){0};
    free(bytes);
    if (st == DP_OK && !frame.data)
        st = dp_fail(err, DP_NOMEM, "no memory for a copy of the register");
    if (st == DP_OK)
        service->options.answer(service->options.context, to, &reply, &frame, 1);
    return st;
}

enum dp_status dp_control_register_service_take(struct dp_control_register_service *service, uint64_t now_ns,
                                                const struct dp_peer *from, const struct dp_request *request,
                                                struct dp_error *err)
{
    if (request->kind == DP_REQUEST_REGISTER_COPY)
        return copy(service, from, request, err);
    DP_ASSERT(request->name[0] && request->wait_ms <= DP_TIMEOUT_MS_MAX);
    DP_ASSERT(request->kind == DP_REQUEST_REGISTER_GET || request->kind == DP_REQUEST_REGISTER_SET);
    return request->kind == DP_REQUEST_REGISTER_GET ? get(service, now_ns, from, request, err)
                                                    : set(service, from, request, err);
}

void dp_control_register_service_tick(struct dp_control_register_service *service, uint64_t now_ns)
{
    for (uint32_t i = service->count; i-- > 0;) {
        const struct waiter *waiter = &service->waiter[i];
        bool over = waiter->until_ns <= now_ns;
        if (!over && waiter->silent_ns > now_ns)
            continue;
        if (over)
            answer_waiter(service, waiter);
        drop(service, i);
    }
}

uint64_t dp_control_register_service_due_ns(const struct dp_control_register_service *service)
{
    uint64_t due = UINT64_MAX;
    for (uint32_t i = 0; i < service->count; i++) {
        const struct waiter *waiter = &service->waiter[i];
        uint64_t one = waiter->until_ns < waiter->silent_ns ? waiter->until_ns : waiter->silent_ns;
        due = one < due ? one : due;
    }
    return due;
}
