/* How to read each figure, for captions: the meaning of marks, and which direction is better. */
#include "plots/figure.h"

static const char *const readings[][2] = {
    {"affinity", "A device is good at an operator where its line is high."},
    {"batch", "A flat line means that a larger batch is free."},
    {"breakdown", "Shorter is better; the coloured parts of a bar are its mean latency."},
    {"causes", "Shorter is better; the coloured parts of a bar add up to its mean latency."},
    {"cdf", "A curve further left is faster. Dotted lines are at P50, P90 and P99."},
    {"chunk", "Small chunks let reactive requests in sooner and cost throughput."},
    {"corun", "1 means that a kernel does not notice the other one."},
    {"ddr", "The area is what the DDR carries, the line above it what was asked for."},
    {"draft", "A flat line means that a longer draft is free."},
    {"drive", "A point on the diagonal is a request that took as long as simulated."},
    {"gantt", "A bar is work on a device. A number in it is the first request that it serves."},
    {"graphs", "A row is a strategy with its time in all; a number is a block of the graph."},
    {"headline", "Shorter is better; whiskers are 95 % intervals. A bar with &raquo; is cut."},
    {"heatmap", "Each cell is the mean at one setting of both parameters."},
    {"interference", "A row is a class that waits, a column the class that it waits for."},
    {"job", "A bar is a request, pale while it waits. The black line is the critical path."},
    {"kernels", "Further left is better; every operator has one point per device."},
    {"latency-rate", "Lower is better. A red ring means that some of the runs were overloaded."},
    {"lengths", "The curve is the share of requests that have at most so many tokens."},
    {"mixed", "Lower is better: what a chunk of a prompt costs the sequences that decode with it."},
    {"pareto", "Better is lower and further right. Lines join loads of one policy."},
    {"prompt", "Times rise in proportion where a device is full, and are flat below."},
    {"queue", "A line that keeps rising is a queue that is not served."},
    {"roofline", "A kernel near its roof uses what the device has."},
    {"schemes", "A scheme keeps up until its latency rises."},
    {"sd", "Shorter is better in all three."},
    {"throughput-rate", "A line that leaves the diagonal no longer keeps up."},
    {"tornado", "A number that matters has a long bar. A bar that crosses zero turns the order."},
    {"utilisation", "A bar is a mean over runs; whiskers are 95 % intervals."},
};

const char *figure_reading(const char *name)
{
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++) {
        if (strcmp(readings[i][0], name) == 0) {
            return readings[i][1];
        }
    }
    return "";
}
