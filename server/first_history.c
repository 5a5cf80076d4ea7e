#include "server/first_history.h"

#include "common/base/log.h"
#include "common/client/downpour.h"
#include "server/identity.h"

#include <poll.h>

#define TRY_MS    1000u
#define TRIES_SAY 10u /* tries between two lines of the log */

static bool gives_up(void *context)
{
    const struct dp_first_history *ask = context;
    struct pollfd signal = {.fd = ask->signal_fd, .events = POLLIN};
    return poll(&signal, 1, 0) > 0;
}

static enum dp_status ask_once(struct dp_first_history *ask, struct dp_client **client, uint64_t *history,
                               struct dp_error *err)
{
    const struct dp_client_options options = {.name = "server",
                                              .cluster = ask->cluster,
                                              .control = ask->control,
                                              .gives_up = gives_up,
                                              .gives_up_context = ask};
    struct dp_register_value unread = {0};
    uint64_t generation;
    enum dp_status st = *client ? DP_OK : dp_client_open(&options, client, err);
    /* Any answer brings the generation with it. */
    if (st == DP_OK)
        st = dp_client_register_get(*client, DP_STORES_NAME, 0, 0, TRY_MS, &unread, err);
    dp_register_value_clear(&unread);
    if (st == DP_OK)
        dp_client_generation(*client, &generation, history);
    return st;
}

enum dp_status dp_first_history_ask(void *context, uint64_t *history, struct dp_error *err)
{
    struct dp_first_history *ask = context;
    struct dp_client *client = NULL;
    enum dp_status st = ask_once(ask, &client, history, err);
    for (uint32_t tries = 0; dp_status_class((int)st) == DP_CLASS_RETRY && !gives_up(ask); tries++) {
        if (tries % TRIES_SAY == 0)
            dp_log(DP_LOG_INFO, "waits for the first server to say whether the restore took place: %s",
                   err->text);
        struct pollfd signal = {.fd = ask->signal_fd, .events = POLLIN};
        (void)poll(&signal, 1, TRY_MS); /* it may fail at once */
        dp_client_close(&client);       /* the first server may be of another generation when it comes back */
        st = ask_once(ask, &client, history, err);
    }
    if (st != DP_OK && gives_up(ask))
        st = dp_fail(err, DP_STOPPING, "stopped while it waited for the first server");
    dp_client_close(&client);
    return st;
}
