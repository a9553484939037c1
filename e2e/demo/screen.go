package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// screen draws a picture and the end of the story on width columns and fewer than
// height rows, one being the cursor's; 0 is no limit.
func screen(p picture, story []event, width, height int) []line {
	title := line{{fmt.Sprintf("%5.1fs  ", p.at.Seconds()), strong}, {p.fault, strong}, {": " + p.does, plain}}
	lines := append(title.wrap(width), nil)
	lines = append(lines, memberTable(p.members, width)...)
	lines = append(lines, nil)
	lines = append(lines, clientTable(p.clients, width)...)
	lines = append(lines, nil)
	room := 0 // no limit
	if height > 0 {
		room = max(height-len(lines)-1, 1)
	}
	lines = append(lines, end(story, width, room)...)
	for i := range lines {
		lines[i] = lines[i].fit(width)
	}
	if height > 0 && len(lines) >= height {
		lines = lines[:height-1]
	}
	return lines
}

// end is the last events of the story that fit in room lines; 0 is no limit.
func end(story []event, width, room int) []line {
	var lines []line
	for _, e := range slices.Backward(story) {
		more := e.lines(width)
		if room > 0 && len(lines)+len(more) > room {
			break
		}
		lines = append(more, lines...)
	}
	return lines
}

// lines is the event with its time before it, broken where the screen ends.
func (e event) lines(width int) []line {
	first := word{fmt.Sprintf("%5.1fs  ", e.at.Seconds()), faint}
	indent := utf8.RuneCountInString(first.text)
	if width > 0 {
		width = max(width-indent, 1)
	}
	lines := line{{e.text, e.tone}}.wrap(width)
	for i, l := range lines {
		lines[i] = append(line{first}, l...)
		first = word{strings.Repeat(" ", indent), plain}
	}
	return lines
}

func memberTable(members []memberState, width int) []line {
	cols := []column{
		{title: "member"}, {title: "in truth"}, {title: "shim says", spare: 2}, {title: "our grade"},
		{title: "streams ours/official", spare: 3},
	}
	var rows [][]line
	for _, m := range members {
		rows = append(rows, []line{
			{{m.name, strong}}, {m.truth}, {m.shim}, {m.grade}, sentence(plain, "%d / %d", m.ours, m.official),
		})
	}
	return table(cols, rows, width)
}

func clientTable(clients []clientState, width int) []line {
	cols := []column{
		{title: "client"}, {title: "Gets/s", right: true, spare: 2}, {title: "Puts/s", right: true, spare: 3},
		{title: "blocked", spare: 1}, {title: "lease left"}, {title: "each watch silent for"},
	}
	rows := func(watches func(clientState) line) [][]line {
		var rows [][]line
		for _, c := range clients {
			rows = append(rows, []line{
				{{c.name, strong}}, sentence(plain, "%.0f", c.gets), sentence(plain, "%.0f", c.puts),
				{c.blockedWord()}, {c.leaseWord()}, watches(c),
			})
		}
		return rows
	}
	lines := table(cols, rows(clientState.eachWatch), 0)
	for _, l := range lines {
		if width > 0 && l.width() > width {
			cols[len(cols)-1].title = "watch silent"
			return table(cols, rows(clientState.worstWatch), width)
		}
	}
	return lines
}

func (c clientState) blockedWord() word {
	if c.waiting == 0 {
		return word{"-", faint}
	}
	return word{fmt.Sprintf("%d (%s)", c.waiting, seconds(c.oldest)), bad}
}

func (c clientState) leaseWord() word {
	switch {
	case c.lost > 0:
		return word{fmt.Sprintf("LOST %d of %d", c.lost, c.leases), bad}
	case c.leases == 0 || c.ttl < 0:
		return word{"-", faint}
	default:
		return word{fmt.Sprintf("%.0f s", c.ttl.Seconds()), good}
	}
}

// eachWatch lists the watches with the member that each is on.
func (c clientState) eachWatch() line {
	var l line
	for i, w := range c.watches {
		if i > 0 {
			l = append(l, word{"  ", plain})
		}
		l = append(l, word{strings.TrimSpace(w.on + " " + seconds(w.silent)), w.tone()})
	}
	return l
}

// worstWatch tells of the most silent watch only.
func (c clientState) worstWatch() line {
	w := c.worst()
	if w.silent < loud {
		return sentence(good, "%s", seconds(w.silent))
	}
	return sentence(bad, "%s%s", seconds(w.silent), w.where(" on "))
}

// statusLine is the picture on one line, for output that is not a screen.
func statusLine(p picture) line {
	l := line{{fmt.Sprintf("%5.1fs  ", p.at.Seconds()), faint}}
	for i, c := range p.clients {
		if i > 0 {
			l = append(l, word{" | ", faint})
		}
		l = append(l, word{fmt.Sprintf("%s %.0f Gets/s %.0f Puts/s, watch silent ", c.name, c.gets, c.puts), plain})
		l = append(l, c.worstWatch()...)
		if c.waiting > 0 {
			l = append(l, word{fmt.Sprintf(", %s blocked", count(c.waiting, "call")), bad})
		}
		l = append(l, word{", lease ", plain}, c.leaseWord())
	}
	return l
}

// blockedMeans explains the word blocked at the end.
var blockedMeans = fmt.Sprintf("calls that took more than %.0f s", workload.Slow.Seconds())
