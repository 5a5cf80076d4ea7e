#include "common/client/view_watch.h"

#include "common/client/register_watch.h"

#include <inttypes.h>
#include <stdio.h>

#define HELD_NS  (UINT64_C(2) * 1000000000u) /* so long most steps do not take */
#define PAUSE_NS (UINT64_C(1) * 1000000000u) /* after an answer that was of no use */
#define WAIT_MS  60000u

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
    watch->due_ns = now_ns + PAUSE_NS;
    dp_register_watch_ask(client, &watch->question, name, client->place.view, WAIT_MS);
}

/* The register's answer. Only a newer view of this run with this process in it is of use. */
static void take(struct dp_client *client, const struct dp_call *call)
{
    struct dp_client_watch *watch = &client->watch;
    struct dp_view view = {0};
    const struct dp_message *message = call->message;
    if (call->err.status == DP_OK && message && call->kept.version > client->place.view &&
        dp_view_unpack(message->frame[1].data, message->frame[1].size, &view, NULL) == DP_OK &&
        view.number == call->kept.version)
        watch->news(client, &view);
    dp_view_clear(&view);
    dp_register_watch_end(client, &watch->question);
}

static void look(struct dp_client *client, uint64_t now_ns)
{
    struct dp_client_watch *watch = &client->watch;
    const struct dp_call *answered = dp_register_watch_answered(&watch->question);
    if (answered)
        take(client, answered);
    if (!is_held(client)) {
        watch->since_ns = 0;
        return;
    }
    if (watch->since_ns == 0)
        watch->since_ns = now_ns;
    if (!watch->question.asked && now_ns >= watch->due_ns && now_ns - watch->since_ns >= HELD_NS &&
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
