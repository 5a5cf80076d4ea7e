/* Mail: messages under way, which are lost, doubled, delayed and overtaken, and the inboxes that they come to.
 * Thread    One. Memory: a message belongs to its mail. */
#ifndef DP_TESTS_SIM_MAIL_H
#define DP_TESTS_SIM_MAIL_H

#include "common/wire/message.h"
#include "tests/sim/world.h"

struct sim_mail {
    struct dp_message *message;
    struct dp_peer peer; /* of the connection */
    uint32_t link;       /* the server's number, as its client has it */
    bool to_server;
};

/* Takes the message over. arrive(context, mail) is called for each copy that comes; what it leaves in the mail is freed. */
void sim_mail_send(struct sim_world *world, const struct sim_mail_odds *odds, const struct sim_mail *mail,
                   void (*arrive)(void *context, struct sim_mail *mail), void *context);
/* Forgets what is under way. */
void sim_mail_clear(struct sim_world *world);

/* In the order of arrival. All 0: empty. */
struct sim_inbox {
    struct sim_letter *first, *last;
};
/* Takes the message over, and leaves NULL. */
void sim_inbox_put(struct sim_inbox *inbox, struct sim_mail *mail);
/* False: it is empty. */
bool sim_inbox_take(struct sim_inbox *inbox, struct sim_mail *out);
void sim_inbox_clear(struct sim_inbox *inbox);

#endif
