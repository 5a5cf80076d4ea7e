/* Model: what must hold, kept beside the real thing and independent of it.
 * It is told of each record that a shard appends to its journal, of what an opening found there, of each answer that
 * leaves a shard and each that reaches a worker. It keeps each shard's records, the rows that follow from them
 * (row by row, push by push), and every value that a row ever had.
 * Checked   appended  lsns ascend by 1; each (stream, number) is there once, and a stream's numbers ascend by 1: so
 *                     nothing is doubled, lost or overtaken. What is appended is what a worker sent.
 *           opened    what was answered is still there; what is replayed is what was appended.
 *           answered  OK only for a push that is among the records.
 *           pulled    on leaving a shard the values are those of the rows of now, bit for bit; on reaching a worker
 *                     they are ones that the row had, and not from before the last push that was acknowledged
 *                     before the pull was asked for.
 *           members  views are those of the register and ascend; a replaced process pushes nothing any more; pulls show
 *                     the steps that the mode says, and are held as long as it says; a synchronous step is closed once, in
 *                     order, with the same members on each shard and the durable pushes of all of them, and its rows
 *                     are what these give (model_steps.h, model_close.c).
 *           leases   a process whose place was taken is told so, and no other; no number counts as done, and no epoch as
 *                     over, that some shard lacks; none is given that is too far above the lowest such.
 *           at the end  the store's rows are those of the records, all bytes of them; every push that was
 *                     acknowledged is there; sums of integer tables by plain addition; and where the order is fixed the
 *                     rows of an undisturbed run (worker.h).
 * Thread    One. Memory: its own. Failure: sim_fail. */
#ifndef DP_TESTS_SIM_MODEL_H
#define DP_TESTS_SIM_MODEL_H

#include "common/wire/reply.h"
#include "server/control/leases.h"
#include "server/journal/journal.h"
#include "tests/sim/sim_store.h"

struct sim_model *sim_model_new(struct sim_world *world);
void sim_model_free(struct sim_model **model);

/* ---- the shards' side */
/* durable: how far the journal is meanwhile. */
void sim_model_appended(struct sim_model *model, uint32_t shard, uint64_t lsn, uint64_t durable,
                        const struct dp_journal_piece *pieces, uint32_t count);
void sim_model_replayed(struct sim_model *model, uint32_t shard, uint64_t lsn, const void *record,
                        size_t bytes);
/* An opening of the journal ended: its last lsn. power: it was lost before, where that may take answers back. */
void sim_model_opened(struct sim_model *model, uint32_t shard, uint64_t last);
/* A request comes to a shard, and an answer leaves it. */
void sim_model_asked(struct sim_model *model, uint32_t shard, const struct dp_message *request);
void sim_model_answered(struct sim_model *model, uint32_t shard, const struct dp_message *answer);
/* The shard was closed: what it was asked is forgotten. */
void sim_model_closed(struct sim_model *model, uint32_t shard);
/* A shard was drained and its store closed. */
void sim_model_drained(struct sim_model *model, uint32_t shard, const struct sim_store *store);

/* The register has this view. */
void sim_model_view(struct sim_model *model, const void *bytes, size_t size);
/* The process with this incarnation heard that its place was lost: to one that let it leave, or to another one. */
void sim_model_lost_its_place(const struct sim_model *model, uint32_t rank, uint64_t incarnation,
                              bool was_let_leave);
/* The first server answers a request for leases; its table is lost. */
void sim_model_leased(struct sim_model *model, const struct dp_request *ask, enum dp_status st,
                      const struct dp_lease_answer *answer);
void sim_model_leases_lost(struct sim_model *model);
/* Whether each shard has finished, and in sync closed, all that members took part in; and has all that was to be leased. */
bool sim_model_is_settled(const struct sim_model *model);

/* ---- the workers' side */
/* A worker is about to send this: key i's gradient is at gradients[i * dim]. */
struct sim_sent {
    uint32_t table; /* its place in the plan */
    uint32_t rows;
    const uint64_t *keys; /* not mixed, no key twice */
    const float *gradients;
};
void sim_model_sends(struct sim_model *model, uint64_t stream, uint64_t number,
                     const struct sim_sent *sections, uint32_t count);
/* It was acknowledged. */
void sim_model_acknowledged(struct sim_model *model, uint64_t stream, uint64_t number);
/* Servers told a worker that they have all numbers below `count`. */
void sim_model_told(struct sim_model *model, uint64_t stream, uint64_t count);
/* Somebody was told that every shard has this leased number. */
void sim_model_told_of(struct sim_model *model, uint64_t stream, uint64_t number);
bool sim_model_is_acknowledged(const struct sim_model *model, uint64_t stream, uint64_t number);
/* The state of a row of now: nothing older may be shown once all is at rest. */
uint32_t sim_model_newest(struct sim_model *model, uint32_t table, uint64_t key);
/* The oldest state of a row that a pull which is asked for now may show; and whether it shows one since. */
uint32_t sim_model_floor(struct sim_model *model, uint32_t table, uint64_t key);
void sim_model_pulled(struct sim_model *model, uint32_t table, uint64_t key, uint32_t floor,
                      const float *weights);
/* It was asked for as a member's for this step: in sync these are the weights before it, exactly. */
void sim_model_pulled_in_step(struct sim_model *model, uint32_t table, uint64_t key, uint64_t step,
                              const float *weights);
/* A worker has left its run, and all shards know. */
void sim_model_left(struct sim_model *model, uint32_t worker);
/* In sync: the steps that a pull on nobody's behalf must show which is asked for now, all of whose pushes were acknowledged; and whether it
 * shows the weights before one of the steps from there on. */
uint64_t sim_model_closed_steps(const struct sim_model *model);
void sim_model_pulled_between_steps(struct sim_model *model, uint32_t table, uint64_t key, uint64_t closed,
                                    const float *weights);

/* The row of now; NULL: never pushed. */
const void *sim_model_row(const struct sim_model *model, uint32_t table, uint64_t key);
/* At the end, all shards drained. */
void sim_model_end(struct sim_model *model);

#endif
