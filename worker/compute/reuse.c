#include "worker/compute/reuse.h"

struct life {
    int first, last;       /* in the forward pass */
    int again, last_again; /* in the backward pass */
};

static bool apart(const struct life *a, const struct life *b)
{
    const int spans[2][2][2] = {{{a->first, a->last}, {a->again, a->last_again}},
                                {{b->first, b->last}, {b->again, b->last_again}}};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (spans[0][i][0] <= spans[1][j][1] && spans[1][j][0] <= spans[0][i][1])
                return false;
    return true;
}

/* From the end: a value is needed again at its last user's backward step, or earlier if that user is
 * recomputed earlier. */
static void live(const struct dp_graph *graph, struct life *lives)
{
    int nodes = dp_graph_nodes(graph);
    for (int i = 0; i < nodes; i++)
        lives[i] = (struct life){i, i, 2 * nodes - i, 2 * nodes - i};
    for (int u = nodes - 1; u >= 0; u--) {
        const struct dp_node *user = dp_graph_node(graph, u);
        int step = user->recomputed ? lives[u].again : 2 * nodes - u;
        for (int k = 0; k < user->inputs; k++) {
            struct life *x = &lives[user->input[k]];
            x->last = x->last > u ? x->last : u;
            x->again = x->again < step ? x->again : step;
        }
    }
}

void dp_reuse_plan(const struct dp_graph *graph, struct dp_reuse *out)
{
    struct life lives[DP_GRAPH_NODES_MAX];
    live(graph, lives);
    out->buffers = 0;
    for (int i = 0; i < dp_graph_nodes(graph); i++) {
        const struct dp_node *node = dp_graph_node(graph, i);
        out->buffer_of[i] = -1;
        for (int b = 0; node->recomputed && out->buffer_of[i] < 0 && b <= out->buffers; b++) {
            bool free = true;
            for (int other = 0; other < i; other++)
                free = free && (out->buffer_of[other] != b || apart(&lives[i], &lives[other]));
            if (!free)
                continue;
            if (b == out->buffers)
                out->width[out->buffers++] = 0;
            out->buffer_of[i] = b;
            out->width[b] = out->width[b] > node->width ? out->width[b] : node->width;
        }
    }
}
