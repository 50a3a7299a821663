# Transfers of a list, each one way, in ns-2.35: what compare_ns2_transfers.py sets beside aqmlab's.
#
#   ns ns2_transfers.tcl list=FILE aqm=DropTail|RED|PI|... key=value ...       prints one line of JSON
#
# A line of the list is a transfer: when it begins (seconds), its pair, its packets. The pool of ns2_web.tcl: one-way agents, which
# open with a 40-byte packet that the sink acknowledges and know no FIN; one that is through goes into a list of its pair and is
# used again. `times` has two numbers for each transfer that began after the warm-up and is through: its line in the list, from 0,
# and the seconds from its beginning until its last packet reached the sink.
source [file join [file dirname [info script]] ns2_dumbbell.tcl]
options {list "" cc Sack1 pairs 10} $argv
prepare
dumbbell $o(pairs)

set file [open $o(list)]
set line -1
set started 0
set finished 0
set times {}
for {set k 0} {$k < $o(pairs)} {incr k} {
    set idle($k) {}
    # The way of the last acknowledgement, which an empty link and 1 Gb/s before and behind it carry.
    set rtt [expr {$o(rttmin) + double($o(rttmax) - $o(rttmin)) * $k / max(1, $o(pairs) - 1)}]
    set back($k) [expr {$rtt / 2000 + 40 * 8 / 1e6 * (1.0 / $o(rate) + 2.0 / $o(access))}]
}

# The next line of the list.
proc await {} {
    global ns file line due
    if {[gets $file due] < 0} { return }
    incr line
    $ns at [lindex $due 0] arrive
}

proc arrive {} {
    global ns o idle sink_of line due started begun
    set k [lindex $due 1]
    if {[llength $idle($k)]} {
        set tcp [lindex $idle($k) end]
        set idle($k) [lreplace $idle($k) end end]
        $tcp reset
        $sink_of($tcp) reset
        # The loss of a first packet lowers it for good.
        $tcp set windowInit_ $o(iw)
    } else {
        set tcp [connection $k]
    }
    incr started
    set begun($tcp) [list $line [$ns now]]
    $tcp advance [lindex $due 2]
    await
}

proc connection {k} {
    global ns o sender receiver pair_of sink_of
    set tcp [new Agent/TCP/$o(cc)]
    set sink [new Agent/TCPSink[expr {$o(cc) eq "Sack1" ? "/Sack1" : ""}]]
    $ns attach-agent $sender($k) $tcp
    $ns attach-agent $receiver($k) $sink
    $ns connect $tcp $sink
    $tcp set fid_ [array size pair_of]
    set pair_of($tcp) $k
    set sink_of($tcp) $sink
    return $tcp
}

# ns-2 calls this when the last packet of a transfer is acknowledged.
Agent/TCP instproc done {} {
    global ns o idle pair_of begun back finished times
    set k $pair_of($self)
    lappend idle($k) $self
    incr finished
    foreach {number from} $begun($self) {}
    if {$from >= $o(warmup)} { lappend times $number [format %.6f [expr {[$ns now] - $from - $back($k)}]] }
}
await

proc totals {} {
    global started finished
    return [dict create started $started finished $finished]
}

proc derived {d span} {
    global times
    return [list started [dict get $d started] finished [dict get $d finished] times "\[[join $times ", "]\]"]
}
measure transfers totals derived
