#include "common/client/view_watch.h"

#include "common/client/ask.h"

#include <inttypes.h>
#include <stdio.h>

#define HELD_NS  (UINT64_C(2) * 1000000000u) /* so long most steps do not take */
#define PAUSE_NS (UINT64_C(1) * 1000000000u) /* after an answer that was of no use */
#define WAIT_NS  (UINT64_C(60) * 1000000000u)

static bool is_held(const struct dp_client *client)
{
    for (uint32_t i = 0; i < client->shards; i++)
        if (client->link[i].held > 0)
            return true;
    return false;
}

/* What cannot be asked now for lack of memory is asked later. */
static void ask(struct dp_client *client, uint64_t now_ns)
{
    struct dp_client_watch *watch = &client->watch;
    char name[32];
    dp_client_view_name(client->place.run, name, sizeof name);
    struct dp_shard_request *get = dp_client_draft_one(client, DP_REQUEST_REGISTER_GET, DP_REPLY_REGISTER,
                                                       name, (uint32_t)(WAIT_NS / 1000000u));
    watch->due_ns = now_ns + PAUSE_NS;
    if (get) {
        get->request.version = client->place.view;
        get->wait_until_ns = now_ns + WAIT_NS;
        get->call->take = dp_call_keep;
    }
    watch->asked = dp_client_post(client, client->shards, &get);
}

/* The register's answer. Only a newer view of this run with this process in it is of use. */
static void take(struct dp_client *client)
{
    struct dp_client_watch *watch = &client->watch;
    struct dp_call *call = watch->asked;
    struct dp_view view = {0};
    const struct dp_message *message = call->message;
    watch->asked = NULL;
    if (call->err.status == DP_OK && message && call->kept.version > client->place.view &&
        dp_view_unpack(message->frame[1].data, message->frame[1].size, &view, NULL) == DP_OK &&
        view.number == call->kept.version)
        watch->news(client, &view);
    dp_view_clear(&view);
    dp_client_end(client, call);
}

static void look(struct dp_client *client, uint64_t now_ns)
{
    struct dp_client_watch *watch = &client->watch;
    if (watch->asked && dp_call_done(watch->asked))
        take(client);
    if (!is_held(client)) {
        watch->since_ns = 0;
        return;
    }
    if (watch->since_ns == 0)
        watch->since_ns = now_ns;
    if (!watch->asked && now_ns >= watch->due_ns && now_ns - watch->since_ns >= HELD_NS &&
        client->session.replaced.status == DP_OK)
        ask(client, now_ns);
}

void dp_client_view_watch_begin(struct dp_client *client,
                                void (*news)(struct dp_client *client, const struct dp_view *view))
{
    client->watch.look = look;
    client->watch.news = news;
}

void dp_client_view_name(uint32_t run, char *name, size_t size)
{
    (void)snprintf(name, size, "run/%" PRIu32 "/view", run);
}
