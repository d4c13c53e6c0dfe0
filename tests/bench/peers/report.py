#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tables (on the output, in Markdown) and a plot of what run-peers --json wrote.

usage: report.py [--plot FILE.svg] JSON...

Several files, for example of one message size each, become one report.
"""

import argparse
import json

OURS = 'r3ring'


def size_text(size):
    return f'{size} B' if size < 1024 else f'{size // 1024} KiB'


def time_text(ns):
    for unit, factor in (('ns', 1), ('us', 1e3), ('ms', 1e6)):
        if ns < 1000 * factor:
            return f'{ns / factor:.0f} ns' if factor == 1 else f'{ns / factor:.3g} {unit}'
    return f'{ns / 1e9:.3g} s'


def rate_text(rate):
    if rate >= 1e6:
        return f'{rate / 1e6:.3g} M/s'
    return f'{rate / 1e3:.3g} k/s'


def measured(row):
    return row['state'] == 'ok'


def ratio_text(row, ours, key):
    """How much better (above 1) r3ring is than this row."""
    if row is ours or not ours or not measured(ours):
        return ''
    ratio = row[key] / ours[key] if key.endswith('_ns') else ours[key] / row[key]
    return f'{ratio:.2f}x' if ratio < 100 else f'{ratio:.0f}x'


def table_line(row, ours):
    tries = row['kept'] + row['thrown_away']
    if not measured(row):
        reason = row.get('reason', f"{row['lost']} lost, {row['wrong']} wrong, "
                                   f"{row['thrown_away']} of {tries} thrown away")
        return f"| {row['peer']} | {row['state']}: {reason} |" + ' |' * 7
    throughput = row['messages_per_s'] * row['size'] / 1e9
    return (f"| {row['peer']} | {time_text(row['p50_ns'])} | {time_text(row['p99_ns'])} "
            f"| {time_text(row['p999_ns'])} | {ratio_text(row, ours, 'p50_ns')} "
            f"| {rate_text(row['messages_per_s'])} | {throughput:.3g} GB/s "
            f"| {ratio_text(row, ours, 'messages_per_s')} | {row['kept']} of {tries} |")


def print_table(rows, floors, size, readers):
    rows = [row for row in rows if row['size'] == size and row['readers'] == readers]
    if not rows:
        return
    ours = next((row for row in rows if row['peer'] == OURS), None)
    print(f"\n**{size_text(size)}, {readers} reader{'' if readers == 1 else 's'}** "
          f"(a cache line's way {time_text(floors['line_ns'])}, a futex wake "
          f"{time_text(floors['futex_wake_ns'])}, a memcpy of the message "
          f"{time_text(floors['memcpy_ns'][str(size)])})\n")
    print('| | p50 | p99 | p99.9 | beside r3ring | messages | bytes | beside r3ring | kept |')
    print('|---|---|---|---|---|---|---|---|---|')
    for row in rows:
        print(table_line(row, ours))


def print_peers(rows):
    print('\n| peer | version | used how |\n|---|---|---|')
    shown = set()
    for row in rows:
        if row['peer'] not in shown:
            shown.add(row['peer'])
            print(f"| {row['peer']} | {row['version']} | {row['how']} |")


def draw_latency(axes, rows, names):
    for y, name in enumerate(names):
        row = next((row for row in rows if row['peer'] == name and measured(row)), None)
        if not row:
            continue
        color = '#c2410c' if name == OURS else '#475569'
        axes.plot([row['p50_ns'], row['p99_ns']], [y, y], color=color, linewidth=3)
        axes.plot([row['p99_ns'], row['p999_ns']], [y, y], color=color, linewidth=1)
        axes.plot([row['p50_ns']], [y], 'o', color=color, markersize=7)
    axes.set_xscale('log')


def draw_rate(axes, rows, names):
    for y, name in enumerate(names):
        row = next((row for row in rows if row['peer'] == name and measured(row)), None)
        if row:
            axes.barh(y, row['messages_per_s'] / 1e6,
                      color='#c2410c' if name == OURS else '#94a3b8', height=0.65)


def dress(axes, names, title, label):
    axes.set_title(title, loc='left', fontsize=10)
    axes.set_xlabel(label, fontsize=8)
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels(names, fontsize=8)
    axes.tick_params(axis='x', labelsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis='x', color='#e2e8f0')
    axes.set_axisbelow(True)
    for side in ('top', 'right', 'left'):
        axes.spines[side].set_visible(False)


def plot(rows, path):
    import matplotlib
    matplotlib.use('svg')
    matplotlib.rcParams.update({'svg.fonttype': 'none', 'svg.hashsalt': OURS,
                                'font.family': 'sans-serif'})
    from matplotlib import pyplot

    rows = [row for row in rows if row['readers'] == 1]
    names = list(dict.fromkeys(row['peer'] for row in rows))
    sizes = sorted({row['size'] for row in rows})
    figure, panels = pyplot.subplots(2, len(sizes), figsize=(4 * len(sizes), 6.4), sharey=True,
                                     squeeze=False)
    for column, size in enumerate(sizes):
        of_size = [row for row in rows if row['size'] == size]
        draw_latency(panels[0][column], of_size, names)
        dress(panels[0][column], names, f'{size_text(size)}: one way, p50, p99, p99.9',
              'ns, less is better')
        draw_rate(panels[1][column], of_size, names)
        dress(panels[1][column], names, f'{size_text(size)}: throughput',
              'million messages a second, more is better')
    figure.tight_layout()
    figure.savefig(path, metadata={'Date': None})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plot', metavar='FILE.svg')
    parser.add_argument('json', nargs='+')
    options = parser.parse_args()
    reports = []
    for name in options.json:
        with open(name, encoding='utf-8') as file:
            reports.append(json.load(file))
    machine = reports[0]['machine']
    print(f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']} "
          f"({machine['architecture']}), compiler {machine['compiler']}.")
    rows = [row for report in reports for row in report['rows']]
    print_peers(rows)
    for report in reports:
        for size in sorted({row['size'] for row in report['rows']}):
            for readers in sorted({row['readers'] for row in report['rows']}):
                print_table(report['rows'], report['floors'], size, readers)
    if options.plot:
        plot(rows, options.plot)


main()
