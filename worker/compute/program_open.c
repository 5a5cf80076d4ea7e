/* Opening a program: checks graph and shape, reserves all buffers, and takes a step of zeros if the backend
 * loads operations at their first use. A separate file, because it uses first_step.c, which calls
 * program.c. */
#include "worker/compute/first_step.h"
#include "worker/compute/program_inner.h"

#include <inttypes.h>
#include <stdlib.h>

/* Whether batches of this shape have what the graph reads. */
static enum dp_status check_shape(const struct dp_graph *graph, const struct dp_batch_shape *worst,
                                  struct dp_error *err)
{
    int lists = dp_graph_lists(graph);
    if (worst->lists != (uint32_t)lists || worst->groups != (uint32_t)dp_graph_groups(graph))
        return dp_fail(err, DP_ARGUMENT,
                       "the data gives %" PRIu32 " lists of %" PRIu32
                       " kinds of keys, the model reads %d of %d",
                       worst->lists, worst->groups, lists, dp_graph_groups(graph));
    for (int l = 0; l < lists; l++) {
        struct dp_graph_list wanted = dp_graph_list_at(graph, l);
        const struct dp_list_shape *has = &worst->list[l];
        if (has->group != wanted.group || (wanted.each != 0 && has->each != wanted.each))
            return dp_fail(err, DP_ARGUMENT,
                           "list %d of the data has keys of kind %" PRIu32 ", %" PRIu32
                           " an example, the model reads kind %" PRIu32 ", %" PRIu32 " an example (0: any)",
                           l, has->group, has->each, wanted.group, wanted.each);
    }
    return DP_OK;
}

enum dp_status dp_program_open(const struct dp_graph *graph, const struct dp_backend *backend,
                               const struct dp_batch_shape *worst, struct dp_program **out,
                               struct dp_error *err)
{
    *out = NULL;
    enum dp_status st = dp_graph_check(graph, err);
    if (st != DP_OK)
        return st;
    if (worst->examples == 0 || worst->examples > DP_GRAPH_WIDTH_MAX)
        return dp_fail(err, DP_ARGUMENT, "a batch of %" PRIu32 " examples is not within 1 .. %u",
                       worst->examples, DP_GRAPH_WIDTH_MAX);
    st = check_shape(graph, worst, err);
    if (st != DP_OK)
        return st;
    struct dp_program *program = calloc(1, sizeof *program);
    if (!program)
        return dp_fail(err, DP_NOMEM, "program: no memory for %zu bytes", sizeof *program);
    program->graph = graph;
    program->backend = *backend;
    program->worst = *worst;
    size_t shrunk = dp_graph_shrunk(graph, worst);
    if (shrunk > 0)
        program->shrink = calloc(shrunk, sizeof *program->shrink);
    if (shrunk > 0 && !program->shrink) {
        free(program);
        return dp_fail(err, DP_NOMEM, "program: no memory to regularize %zu rows", shrunk);
    }
    st = dp_plan_init(&program->plan, graph, backend, worst, err);
    if (st != DP_OK) {
        free(program->shrink);
        free(program);
        return st;
    }
    st = dp_first_step(program, err);
    if (st != DP_OK) {
        dp_program_close(&program);
        return st;
    }
    *out = program;
    return DP_OK;
}

void dp_program_close(struct dp_program **program)
{
    if (!*program)
        return;
    dp_program_drain(*program);
    dp_plan_clear(&(*program)->plan, &(*program)->backend);
    free((*program)->shrink);
    free(*program);
    *program = NULL;
}
