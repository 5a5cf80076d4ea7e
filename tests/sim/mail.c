#include "tests/sim/mail.h"

#include <stdlib.h>

/* ---- under way */

struct sent {
    struct sim_mail mail;
    void (*arrive)(void *context, struct sim_mail *mail);
    void *context;
};

static void forget(struct sent *sent)
{
    dp_message_free(&sent->mail.message);
    free(sent);
}

static void happen(void *context, uint64_t what)
{
    struct sent *sent = context;
    sent->arrive(sent->context, &sent->mail);
    forget(sent);
}

static struct dp_message *copy_of(const struct dp_message *message)
{
    struct dp_message *copy = dp_message_new(message->frames);
    DP_ASSERT(copy);
    for (uint32_t i = 0; i < message->frames; i++)
        dp_message_add(copy, dp_frame_copy(message->frame[i].data, message->frame[i].size));
    return copy;
}

void sim_mail_send(struct sim_world *world, const struct sim_mail_odds *odds, const struct sim_mail *mail,
                   void (*arrive)(void *context, struct sim_mail *mail), void *context)
{
    struct dp_message *message = mail->message;
    for (uint32_t copies = !world->calm && sim_happens(world, odds->twice) ? 2 : 1; copies > 0; copies--) {
        if (!world->calm && sim_happens(world, odds->lose))
            continue;
        struct sent *sent = malloc(sizeof *sent);
        DP_ASSERT(sent);
        *sent = (struct sent){*mail, arrive, context};
        sent->mail.message = copy_of(message);
        uint64_t delay_ns = 50000 + sim_draw(world, 200000);
        if (!world->calm && sim_happens(world, odds->slow))
            delay_ns += sim_draw(world, odds->slow_ms * SIM_MS + 1);
        sim_at(world, delay_ns, happen, sent, 0);
    }
    dp_message_free(&message);
}

void sim_mail_clear(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->waiting; i++)
        if (world->event[i].happen == happen)
            forget(world->event[i].context);
}

/* ---- arrived */

struct sim_letter {
    struct sim_letter *next;
    struct sim_mail mail;
};

void sim_inbox_put(struct sim_inbox *inbox, struct sim_mail *mail)
{
    struct sim_letter *letter = malloc(sizeof *letter);
    DP_ASSERT(letter);
    *letter = (struct sim_letter){.mail = *mail};
    mail->message = NULL;
    *(inbox->first ? &inbox->last->next : &inbox->first) = letter;
    inbox->last = letter;
}

bool sim_inbox_take(struct sim_inbox *inbox, struct sim_mail *out)
{
    struct sim_letter *letter = inbox->first;
    if (!letter)
        return false;
    *out = letter->mail;
    inbox->first = letter->next;
    free(letter);
    return true;
}

void sim_inbox_clear(struct sim_inbox *inbox)
{
    struct sim_mail mail;
    while (sim_inbox_take(inbox, &mail))
        dp_message_free(&mail.message);
}
