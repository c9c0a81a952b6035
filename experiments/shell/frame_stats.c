#include "experiments/shell/frame_stats.h"

const char *document_interval(struct document *d, const struct stats_interval *s)
{
    char text[96];
    return document_format(d, "%s", stats_format(s, text, sizeof text));
}

const char *document_verdict(struct document *d, const struct stats_paired *p)
{
    char text[96];
    return document_format(d, "%s", stats_verdict(p, text, sizeof text));
}
