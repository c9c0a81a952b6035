#include "experiments/shell/frame_stats.h"

const char *document_interval(const struct stats_interval *s)
{
    char text[96];
    return document_format("%s", stats_format(s, text, sizeof text));
}

const char *document_verdict(const struct stats_paired *p)
{
    char text[96];
    return document_format("%s", stats_verdict(p, text, sizeof text));
}
