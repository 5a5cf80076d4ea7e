/* Progress: the workers' notes, as one line for a person.
 * Notes     run/<run>/progress/<worker>. : a JSON object with state, epoch, epochs, examples, examples_total
 *           (of that worker), loss and loss_examples (of the epoch so far), examples_per_s, awaited. An
 *           unreadable note counts as missing, so watching never stops a training.
 * Line      On a terminal it is written over itself; elsewhere a new one comes every few seconds, if it
 *           differs. Where nothing moves for 10 s, a permanent line names the worker or server that the run
 *           waits for. */
#ifndef DP_CLI_PROGRESS_H
#define DP_CLI_PROGRESS_H

#include "common/client/downpour.h"

#include <stdbool.h>
#include <stdio.h>

/* Of all workers; {0} before the first note. */
struct dp_cli_progress {
    uint32_t workers; /* that have said something */
    uint32_t waiting, evaluating, reading, done;
    uint32_t diverged;      /* the first epoch in which one of them has; 0: none */
    uint32_t epoch, epochs; /* of the one that is least far */
    uint64_t examples, total;
    double rate;         /* examples/s */
    uint32_t loss_epoch; /* the earliest that a worker told a loss of: */
    double loss_sum;     /* over the examples of it so far, of all workers in it */
    uint64_t loss_examples;
    double left_s; /* 0: not known yet */
    char awaited
        [256]; /* what one of them says of its wait for others, or for a server; "": nobody waits for long */
};

void dp_cli_progress_add(struct dp_cli_progress *progress, const void *json, size_t size);
/* "epoch 2/10  43%  loss 0.1234  81,234 examples/s  0:12 left" */
void dp_cli_progress_text(const struct dp_cli_progress *progress, char *out, size_t size);

/* How fast all of it goes, evaluation and waits included, by what was seen in the last half of the time at least. */
struct dp_cli_pace {
    uint64_t since_ms, since;   /* examples; 0, 0: nothing was seen yet */
    uint64_t middle_ms, middle; /* where the next measure begins */
};
/* Seconds until `total`, or 0: for the first seconds, and where nothing moves, nobody knows. */
double dp_cli_pace_left(struct dp_cli_pace *pace, uint64_t examples, uint64_t total, uint64_t now_ms);

/* Since when nothing was trained or evaluated. {0} before the first look. */
struct dp_cli_still {
    uint64_t since_ms, told_ms, examples;
    uint32_t done, evaluating;
    bool told;
    char text[320];
};
/* Why, once nothing has moved for 10 s and somebody waits, and again every 30 s; else NULL. seen: NULL if the first server does not answer.
 * The text lives until the next call. */
const char *dp_cli_still(struct dp_cli_still *still, const struct dp_cli_progress *seen, uint64_t now_ms);

struct dp_cli_line {
    FILE *file;       /* NULL: nothing is shown any more */
    bool quiet;       /* lines that stay are shown, and no progress */
    bool moving;      /* a terminal */
    unsigned width;   /* of it */
    bool open;        /* a line without its end stands there */
    unsigned shown;   /* plain lines so far */
    uint64_t next_ms; /* when the next plain line is due */
    char last[160];
    struct dp_cli_pace pace;
    struct dp_cli_still still;
};

void dp_cli_line_init(struct dp_cli_line *line, FILE *file);
void dp_cli_line_show(struct dp_cli_line *line, const char *text, uint64_t now_ms);
/* Makes room for lines that stay: what is shown next stands below them. */
void dp_cli_line_clear(struct dp_cli_line *line);
/* Before anything else is written to the file. */
void dp_cli_line_end(struct dp_cli_line *line);

/* Asks the servers and shows what they know; a server that does not answer changes nothing. Of all
 * workers; {0}: none has said anything, or it could not be asked. */
struct dp_cli_progress dp_cli_progress_watch(struct dp_client *client, uint32_t run,
                                             struct dp_cli_line *line);
/* 81234567 as "81,234,567". out: 32 bytes at least. */
const char *dp_cli_number(double value, char *out, size_t size);
/* Digits after the point of a metric: at most `most`, fewer for 100 or more, none for ten million. */
int dp_cli_digits(double value, int most);

#endif
