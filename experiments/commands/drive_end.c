/* Early ends of real runs: by a signal, or by a failure. */
#include "experiments/commands/drive.h"
#include "experiments/drive/real.h"
#include "experiments/shell/cli.h"

volatile sig_atomic_t drive_interrupt;

static void ask_end(int number)
{
    drive_interrupt = number;
}

void drive_listen(void)
{
    struct sigaction action = {.sa_handler = ask_end, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

int drive_say_interrupted(uint32_t n, const char *what)
{
    (void)fprintf(stderr, "xpusim: interrupted: the results are of %" PRIu32 " %s%s\n", n, what,
                  text_plural(n));
    return EXIT_SIGNAL + (int)drive_interrupt;
}

int drive_failed(const struct real_run *r)
{
    (void)fprintf(stderr, "xpusim: error: %s\n", r->message);
    return EXIT_CHECK_FAILED;
}
