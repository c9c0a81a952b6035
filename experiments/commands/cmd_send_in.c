/* `xpusim send-in`: measures this machine, and makes one archive. */
#include "experiments/commands/commands.h"
#include "experiments/machine/send.h"

static const char *const sizes[] = {"tiny", "small", "full", NULL};

static int run(void *values, struct err *e)
{
    const struct send_options *o = values;
    const char *out = o->out;
    if (!text_ends(out, ".tar.gz")) {
        return err_add(e, "-o '%s': must be a path ending in .tar.gz", out);
    }
    return send_in(o, e);
}

#define OPTIONS struct send_options

static const struct option_row rows[] = {
    OPTION_OUTPUT(OPTIONS, out, "FILE.tar.gz", "my-machine.tar.gz", "write the archive here"),
    OPTION_CHOICE(
        OPTIONS, size, "size", "S", "small", sizes,
        "duration: a rehearsal of a minute or two, half an hour, or matrices of a 7B model"),
    OPTION_FLAG(OPTIONS, dry, "dry", "print what would run and all facts that would go in"),
};
const struct command cmd_send_in = {
    .name = "send-in",
    .summary = "measure this machine, and pack all of it into one archive to send",
    .usage = "[-o my-machine.tar.gz] [--size S] [--dry]",
    .about =
        "Measures every device that OpenVINO finds, alone and in pairs, fits a machine file to "
        "real runs, and compares real with simulated runs on three traces. The archive also has "
        "the hardware, drivers, versions and power limits that can be read without root. It has "
        "no host name, user, folder, address or serial number, and nothing is sent anywhere. The "
        "same command continues an interrupted one. `xpusim new-soc NAME --from FILE.tar.gz` makes "
        "a machine file of it. docs/ai-pc.md is the page for owners.",
    .notes = "Exit status: 0 all was measured; 1 a step failed, and the archive says which; 2 bad "
             "usage or input.",
    COMMAND_TAKES(OPTION_ROWS(NULL, rows), OPTION_CHILD(option_quiet_table, shown)),
    .run = run,
};
