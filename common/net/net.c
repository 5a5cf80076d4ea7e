#include "common/net/net.h"
#include "common/net/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

enum dp_status dp_net_open(uint32_t io_threads, struct dp_net **out, struct dp_error *err)
{
    *out = NULL;
    if (io_threads < 1 || io_threads > 64)
        return dp_fail(err, DP_ARGUMENT, "network: %u I/O threads, expected 1 to 64", io_threads);
    struct dp_net *net = malloc(sizeof *net);
    void *context = zmq_ctx_new();
    struct dp_names *names = dp_names_new();
    if (!net || !context || !names) {
        free(net);
        dp_names_free(&names);
        if (context)
            (void)zmq_ctx_term(context);
        return dp_fail(err, DP_NOMEM, "out of memory for the network's context");
    }
    (void)zmq_ctx_set(context, ZMQ_IO_THREADS, (int)io_threads);
    net->context = context;
    net->names = names;
    net->warned = false;
    net->monitors = 0;
    *out = net;
    return DP_OK;
}

void dp_net_close(struct dp_net **net)
{
    if (!*net)
        return;
    while (zmq_ctx_term((*net)->context) != 0 && errno == EINTR)
        ;
    dp_names_free(&(*net)->names);
    free(*net);
    *net = NULL;
}
