#!/bin/sh
# Draws docs/architecture.svg: the folders as they are, an arrow where one includes another, with the
# number of includes (those of sim/base left out: everybody has them). Layers from the bottom up; every arrow points down, and lint holds that.
set -eu
cd "$(dirname "$0")/.."
git grep -nE '^#include "' -- 'sim/*.[ch]' 'policies/*.[ch]' 'hwmodels/*.[ch]' 'traces/*.[ch]' 'experiments/*.[ch]' 'plots/*.[ch]' |
    awk -F'[:"]' '
    function room(path,   part, n) {
        n = split(path, part, "/")
        if (part[1] == "sim") return "sim/" part[2]
        if (part[1] == "experiments") return part[2] ~ /^(shell|store|run|commands)$/ ? "experiments/" part[2] : "experiments/..."
        if (part[1] == "hwmodels" && n > 2) return "hwmodels/" part[2]
        return part[1]
    }
    {
        from = room($1); to = room($4)
        if (from != to) count[from SUBSEP to]++
        lines[from] += 0
    }
    END {
        names = "sim/base sim/api sim/record sim/stats sim/core sim/metrics sim/engine sim/drive policies hwmodels hwmodels/backends hwmodels/engines traces plots experiments/shell experiments/store experiments/run experiments/... experiments/commands"
        place = "0,0 1,0 1,1 0,2 2,0 2,3 3,0 3,1 2,1 2,2 3,2 3,3 1,2 3,5 1,5 3,4 4,1 5,1 6,1"
        n = split(names, name, " "); split(place, at, " ")
        w = 150; h = 38; gx = 172; gy = 92; top = 6 * gy + 20
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1060 %d\" font-family=\"sans-serif\" font-size=\"13\">\n", top + h + 20
        print "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#567\"/></marker></defs>"
        for (i = 1; i <= n; i++) {
            split(at[i], p, ",")
            x[name[i]] = 15 + p[2] * gx; y[name[i]] = top - p[1] * gy
        }
        for (key in count) {
            split(key, e, SUBSEP)
            if (e[2] == "sim/base") continue # everybody does
            if (!(e[1] in x) || !(e[2] in x)) continue
            order[++m] = sprintf("%s %s %d", e[1], e[2], count[key])
        }
        for (i = 2; i <= m; i++) { # sorted, so that the drawing does not depend on the hash
            t = order[i]
            for (k = i; k > 1 && order[k - 1] > t; k--) order[k] = order[k - 1]
            order[k] = t
        }
        for (i = 1; i <= m; i++) {
            split(order[i], e, " ")
            x1 = x[e[1]] + w / 2; y1 = y[e[1]] + h; x2 = x[e[2]] + w / 2; y2 = y[e[2]]
            if (y1 > y2) { y1 = y[e[1]] + h / 2; y2 = y[e[2]] + h / 2; x1 += x1 < x2 ? w / 2 : -w / 2; x2 += x1 < x2 ? -w / 2 : w / 2 }
            printf "<path d=\"M%g %gC%g %g %g %g %g %g\" fill=\"none\" stroke=\"#567\" stroke-width=\"%.1f\" opacity=\"0.55\" marker-end=\"url(#a)\"><title>%s includes %s: %d</title></path>\n", x1, y1, x1, y1 + 30, x2, y2 - 30, x2, y2, 0.6 + log(e[3]) / 2, e[1], e[2], e[3]
        }
        for (i = 1; i <= n; i++) {
            printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"#f4f7fb\" stroke=\"#345\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#123\">%s</text>\n", x[name[i]], y[name[i]], w, h, x[name[i]] + w / 2, y[name[i]] + 24, name[i]
        }
        print "</svg>"
    }' >docs/architecture.svg
