#include "experiments/shell/term.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "sim/base/base.h"

int term_width(FILE *out)
{
    struct winsize w;
    int fd = fileno(out);
    if (fd < 0 || isatty(fd) == 0 || ioctl(fd, TIOCGWINSZ, &w) != 0) {
        return 0;
    }
    return (int)w.ws_col;
}

static bool is_styled(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    int fd = fileno(out);
    return fd >= 0 && isatty(fd) != 0 && (no_color == NULL || no_color[0] == '\0') &&
           term != NULL && strcmp(term, "dumb") != 0;
}

void term_heading(FILE *out, const char *text)
{
    bool styled = is_styled(out);
    (void)fprintf(out, "%s%s%s\n", styled ? "\033[1m" : "", text, styled ? "\033[0m" : "");
}
