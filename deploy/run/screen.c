#include "deploy/run/screen.h"

#include "common/base/deadline.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The other screen, without cursor and line wrap; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static struct {
    bool open, has_keys;
    struct termios before, during; /* of standard input, with has_keys */
} screen;

/* From here to `sized`: of a signal handler, too. */
static void put(const char *text, size_t size)
{
    ssize_t n = write(STDOUT_FILENO, text, size); /* a terminal that is away gets the next one */
    (void)n;
}

static void enter(void)
{
    if (screen.has_keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.during);
    put(ENTER, sizeof ENTER - 1);
}

static void leave(void)
{
    put(LEAVE, sizeof LEAVE - 1);
    if (screen.has_keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

static void suspend(int signal)
{
    (void)signal;
    leave();
    (void)raise(SIGSTOP);
    enter();
}

static void sized(int signal)
{
    (void)signal; /* it ends a wait */
}

bool dp_screen_begin(void)
{
    struct sigaction stop = {.sa_handler = suspend}, size = {.sa_handler = sized};
    if (isatty(STDOUT_FILENO) != 1)
        return false;
    screen.has_keys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &screen.before) == 0;
    screen.during = screen.before;
    screen.during.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)sigaction(SIGTSTP, &stop, NULL);
    (void)sigaction(SIGWINCH, &size, NULL);
    screen.open = true;
    enter();
    return true;
}

void dp_screen_end(void)
{
    if (screen.open)
        leave();
    screen.open = false;
}

void dp_screen_draw(const char *text)
{
    struct winsize size = {0};
    uint32_t lines = 0, line = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
    uint32_t fit = known ? size.ws_row - 1u : lines;
    (void)fputs("\033[H", stdout);
    for (const char *end; *text && (end = strchr(text, '\n')); text = end + 1) {
        if (lines > fit && line + 1 == fit) {
            (void)printf("\033[2K... %u more lines: make the window higher\n", lines - line);
            break;
        }
        (void)printf("\033[2K%.*s\n", (int)(end - text), text);
        line++;
    }
    (void)fputs("\033[J", stdout);
    (void)fflush(stdout);
}

void dp_screen_wait(uint64_t at_ms, bool *quit)
{
    struct pollfd key = {.fd = screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN};
    char pressed;
    uint64_t now = dp_now_ms();
    int n = poll(&key, 1, now < at_ms ? (int)(at_ms - now) : 0);
    if (n > 0 && (read(STDIN_FILENO, &pressed, 1) != 1))
        screen.has_keys = false; /* its end, or nothing to read: only signals are left */
    else if (n > 0)
        *quit = pressed == 'q' || pressed == 'Q';
}
