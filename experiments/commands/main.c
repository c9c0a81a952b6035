/* `xpusim COMMAND [options]`: finds and runs the command. */
#include <signal.h>

#include "experiments/commands/commands.h"
#include "experiments/run/plugin.h"
#include "policies/external/external.h"
#include "sim/base/datadir.h"
#include "sim/base/memory.h"
#include "sim/base/output.h"
#include "sim/base/version.h"
#include "sim/drive/host.h"

static int dispatch(int argc, char **argv)
{
    struct err e = ERR_INIT;
    if (argc < 2) {
        commands_usage(stderr);
        return EXIT_BAD_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        commands_usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("xpusim %s (%s)\n", XPUSIM_VERSION, XPUSIM_REVISION);
        return EXIT_OK;
    }
    if (strcmp(argv[1], HOST_COMMAND) == 0) { /* only this program starts itself so */
        return plugin_host(argc, argv);
    }
    const struct command *c = command_find(argv[1], &e);
    bool asks = strcmp(argv[1], "help") == 0 || (argc > 2 && strcmp(argv[2], "--help") == 0);
    if (c == NULL || (!asks && datadir_check(&e) != 0)) {
        err_print(&e, stderr);
        err_fini(&e);
        return EXIT_BAD_INPUT;
    }
    return command_main(c, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    memory_guard();
    (void)signal(SIGXFSZ, SIG_IGN); /* a write to a full file then fails with an error */
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    halt_on(ends, sizeof ends / sizeof ends[0]);
    int status = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        perror("xpusim: error: cannot write results");
        status = status == EXIT_OK ? EXIT_CHECK_FAILED : status;
    }
    drive_host_leave(status);
    return status;
}
