/* The simulated register: the first server's register and clients of it, from a seed.
 *     register_sim   seeds, the plan, faults, the network, the server (register, its service, its disk)
 *     register_client   processes that get, set and wait, each on a stack of its own, over the real client library
 *     register_model    what must hold
 * Fails     1 to 5 clients increment, set what they guess, set anew what they saw, and wait for values, up to 35 times each; one may be there to
 *           wait only. Messages are lost, doubled and overtaken; clients die. The server's process dies and its power goes, at any event
 *           and at any disk operation, also while it opens, and soon again after it opened; syncs of file and directory, renames and
 *           writes fail; the disk is full for a while.
 * Checked   At each answer that leaves the server and each that arrives: no version goes back; each version has one maker and one
 *           content, and each set makes one version at most; a set that won made its version, one that was told it lost never makes one;
 *           what a client is shown is not older than what anybody was shown before it asked; the register stays the same one. Waits end
 *           with a newer version or not before their time; in an eighth of the seeds nothing fails, and each wait ends when its reason
 *           is there. At the end the power goes once more: as many versions stand as sets won, and those of which nobody knows.
 * Bugs      No sync of the temp file, of the directory, or of what was found; an old temp file written over; the answer before the write;
 *           a failed write that is shown; nonces forgotten, of the last set only, or drawn anew; a set told that it lost while a copy
 *           of it may still be stored; waiters that nobody wakes or answers in time.
 * Thread    One. */
#ifndef DP_TESTS_SIM_REGISTER_SIM_H
#define DP_TESTS_SIM_REGISTER_SIM_H

#include "common/wire/reply.h"
#include "tests/sim/world.h"

#define REG_CLIENTS_MAX  5u
#define REG_NAMES_MAX    3u
#define REG_VERSIONS_MAX 512u
#define REG_OPS_MAX      2048u /* sets of all clients */

struct reg_plan {
    uint32_t clients, names, turns; /* turns: what a client does */
    struct sim_mail_odds mail;
    uint32_t retry_ms, think_ms;
    uint32_t faults;
    bool storm; /* a server that starts is soon gone again */
    bool clean; /* nothing fails and nothing is lost: waiters are timed */
    uint64_t calm_event;
};

struct reg_model;
struct reg_client;
struct reg_server;

struct reg {
    struct sim_world *world;
    struct reg_plan plan;
    struct reg_model *model;
    struct reg_server *server;
    struct reg_client *client[REG_CLIENTS_MAX];
};

/* ---- the network ---- */

void reg_to_server(struct reg *reg, uint32_t client, uint32_t link, struct dp_message *message);

/* ---- clients ---- */

struct reg_client *reg_client_new(struct reg *reg, uint32_t index);
void reg_client_free(struct reg_client **client);
bool reg_client_is_done(const struct reg_client *client);
uint32_t reg_client_life(const struct reg_client *client);
void reg_client_dies(struct reg_client *client); /* and begins another life */
/* A last life, that looks whether all values are there. */
void reg_client_audit(struct reg_client *client);
void reg_client_receive(struct reg_client *client, uint32_t link, struct dp_message **message);

/* ---- the model ---- */

/* What a set stores. Its bytes are a function of these. */
struct reg_content {
    uint64_t op; /* which set: from 1 */
    uint32_t name;
    uint64_t version;
};
#define REG_CONTENT_BYTES_MAX 1200u

struct reg_model *reg_model_new(struct reg *reg);
void reg_model_free(struct reg_model **model);
void reg_name_of(uint32_t name, char text[16]);
size_t reg_content_bytes(const struct reg_content *content, unsigned char to[REG_CONTENT_BYTES_MAX]);

/* A set begins: returns its number. */
uint64_t reg_model_begin(struct reg_model *model, uint32_t name);
enum reg_end { REG_WON, REG_LOST, REG_UNKNOWN };
void reg_model_end(struct reg_model *model, uint64_t op, enum reg_end end, uint64_t version);
/* An answer leaves the server. `id`: the register's. */
void reg_model_answers(struct reg_model *model, uint64_t id, uint32_t name, uint64_t version,
                       const void *bytes, size_t size);
/* It reached its client: what was delivered at `before` (reg_model_delivered) is not undone. */
void reg_model_shows(struct reg_model *model, uint32_t name, uint64_t version, uint64_t before,
                     const void *bytes, size_t size);
uint64_t reg_model_delivered(const struct reg_model *model, uint32_t name);
/* When that version, or a later one, was first answered; UINT64_MAX: never. */
uint64_t reg_model_made_ns(const struct reg_model *model, uint32_t name, uint64_t version);
/* At the end: what stands is `version`, and its history is whole. */
void reg_model_audit(struct reg_model *model, uint32_t name, uint64_t version);

#endif
