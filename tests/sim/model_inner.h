/* Model, inside: what its files share. Records and rows: model_records.c; what shards are asked and answer: model_answers.c; what
 * workers do, and the end: model.c; how a step's pushes become one: model_close.c; leases: model_leases.c. */
#ifndef DP_TESTS_SIM_MODEL_INNER_H
#define DP_TESTS_SIM_MODEL_INNER_H

#include "common/base/bytes.h"
#include "server/journal/record.h"
#include "tests/sim/history.h"
#include "tests/sim/model.h"
#include "tests/sim/model_steps.h"

#define SIM_STREAMS   64u
#define SIM_ASKED     256u
#define SIM_SEATS_MAX 128u

struct sim_record {
    enum dp_record_kind kind;
    uint64_t stream, number; /* of a push */
    bool again;              /* of an open step, and appended before */
    bool restored;           /* of before a restore: what is in it is not kept */
    bool closes;             /* a close, not appended anew */
    uint64_t step, view;     /* of a member's push, and a close; of a view */
    size_t bytes;
    char *data;
};

/* What a worker sent under an id; after its death perhaps once more, with other gradients. */
struct sim_sent_sums {
    uint64_t stream, number, sum[SIM_SERVERS_MAX]; /* of its rows on each shard */
};

/* A request that a shard got. */
struct sim_asked {
    uint64_t session, id, stream, number;
    enum dp_request_kind kind;
    enum dp_value_type type;
    struct dp_membership member;
    uint32_t keys;
    uint32_t *key; /* of a pull: table << 16 | key */
};

struct sim_model_shard {
    struct sim_record *record; /* [lsn - 1] */
    uint64_t last, room, answered;
    uint64_t base; /* of a restore: the last lsn of before it */
    struct {
        uint64_t stream, next;
    } stream[SIM_STREAMS];
    uint32_t streams;
    uint64_t leased[SIM_EPOCHS_MAX][SIM_LEASED_MAX]; /* lsns of pushes; 0: not there */
    struct sim_steps steps;
    struct sim_asked asked[SIM_ASKED]; /* a ring */
    uint64_t asks;
};

/* The first server's leases, since it was started last. */
struct sim_leases {
    struct sim_seat {
        uint64_t session;
        uint32_t rank;
        bool replaced;
    } seat[SIM_SEATS_MAX]; /* processes that asked */
    uint32_t seats;
    uint64_t given[SIM_EPOCHS_MAX][SIM_LEASED_MAX]; /* how often */
};

struct sim_image;

struct sim_model {
    struct sim_world *world;
    struct sim_image *base; /* what it was restored from; NULL: it was not */
    uint32_t id[SIM_TABLES_MAX];
    struct dp_optimizer *optimizer[SIM_TABLES_MAX];
    struct sim_history history[SIM_TABLES_MAX][SIM_KEYS_MAX];
    struct sim_model_shard shard[SIM_SERVERS_MAX];
    struct sim_members members;
    struct sim_leases leases;
    uint64_t pushed[SIM_WORKERS_MAX]; /* by each worker, as it was told */
    bool left[SIM_WORKERS_MAX];       /* likewise */
    struct sim_close *close;          /* scratch */
    struct sim_sent_sums *sent;
    struct {
        uint64_t stream, number;
    } * acknowledged;
    uint32_t sents, sents_room, acks, acks_room;
    struct dp_request request; /* scratch */
    struct dp_reply reply;
};

/* The place in the plan of a table, by its id, and of a key. */
uint32_t sim_model_table_of(const struct sim_model *model, uint32_t id);
uint32_t sim_model_key_of(const struct sim_model *model, uint64_t mixed);
static inline uint32_t sim_model_key_at(const struct sim_model *model, const struct dp_section *section,
                                        uint32_t row)
{
    return sim_model_key_of(model, dp_load_u64le((const char *)section->keys + (size_t)row * 8));
}
/* Row `row` of a push's section, as f32. */
void sim_model_values_at(const struct dp_section *section, uint32_t row, uint32_t dim, float *out);
/* Into *out and model->request, which lends from the record. */
void sim_model_decode(struct sim_model *model, const struct sim_record *record, struct dp_record *out);
/* Of a row as it was sent, to be added up. */
uint64_t sim_model_row_sum(uint32_t table, uint64_t key, const void *values, size_t bytes);
/* What follows from a record, which is decoded into model->request. durable: UINT64_MAX, of one that was there before. */
void sim_model_fold(struct sim_model *model, uint32_t shard, uint64_t lsn, const struct dp_record *head,
                    uint64_t durable);
/* A push of before a restore. */
void sim_model_count_restored(struct sim_model *model, uint32_t shard, const struct sim_record *record);
void sim_model_shard_clear(struct sim_model *model, uint32_t shard);
/* The store of one of so many shards has the rows that its records give. */
void sim_model_compare(const struct sim_model *model, uint32_t shard, uint32_t shards,
                       const struct sim_store *store, const char *whose);
/* What was pushed before a restore, of a table of integers: its first element. */
double sim_model_base_sum(const struct sim_model *model, uint32_t table, uint32_t key);
/* A push was appended, or was there, where work is leased. */
void sim_model_leased_push(struct sim_model *model, uint32_t shard, uint64_t lsn);
/* Whether every number of every epoch is on each shard; also where no work is leased. */
bool sim_model_leases_are_over(const struct sim_model *model);
struct sim_close *sim_model_close_new(void); /* free */
/* Adds up the pushes of the step that this record closes, checks the record, and applies them. */
void sim_model_close(struct sim_model *model, uint32_t shard, uint64_t lsn, bool new);
/* One row's gradient; `new`: its value is one of its history from now on. */
void sim_model_apply(struct sim_model *model, uint32_t table, uint32_t key, const float *gradient, float rate,
                     uint64_t lsn, bool new);
/* A close whose rows cannot be read, or whose journal has failed, makes nobody wait. */
bool sim_model_may_be_late(const struct sim_plan *plan);
/* The lsn of the push; 0: it is not there. */
uint64_t sim_model_find(const struct sim_model *model, uint32_t shard, uint64_t stream, uint64_t number);

#endif
