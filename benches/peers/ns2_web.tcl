# Short transfers that arrive at random, in ns-2.35: `cps` a second, Pareto sizes of mean `mean_bytes` and shape `shape`.
#
#   ns ns2_web.tcl gen=pool|packmime key=value ...        prints one line of JSON
#
# pool      the fastest way found: one-way Sack1 agents, which open with a 40-byte packet but have neither a full handshake nor a
#           FIN, and transfer whole packets; a finished agent goes into a list of its pair and is used again.
# packmime  PackMimeHTTP over two-way TCP with SACK: handshake, a request of 300 bytes, the response, FIN.
source [file join [file dirname [info script]] ns2_dumbbell.tcl]
options {gen pool cps 1480 mean_bytes 7000 shape 1.2} $argv
set rng [prepare]
Agent/TCP/FullTcp set segsize_ [expr {$o(pkt) - 40}]
Agent/TCP/FullTcp set segsperack_ 1
dumbbell $o(pairs)

proc variable_of {class rng args} {
    set v [new RandomVariable/$class]
    $v use-rng $rng
    foreach {name value} $args { $v set $name $value }
    return $v
}

set started 0
set finished 0
if {$o(gen) eq "pool"} {
    set gaps [variable_of Exponential $rng avg_ [expr {1.0 / $o(cps)}]]
    set sizes [variable_of Pareto $rng avg_ [expr {double($o(mean_bytes)) / ($o(pkt) - 40)}] shape_ $o(shape)]
    for {set k 0} {$k < $o(pairs)} {incr k} { set idle($k) {} }

    proc arrive {} {
        global ns o gaps sizes rng idle pair_of sink_of started
        $ns at [expr {[$ns now] + [$gaps value]}] arrive
        set k [$rng integer $o(pairs)]
        if {[llength $idle($k)]} {
            set tcp [lindex $idle($k) end]
            set idle($k) [lreplace $idle($k) end end]
            $tcp reset
            $sink_of($tcp) reset
        } else {
            set tcp [connection $k]
        }
        incr started
        $tcp advance [expr {int(ceil([$sizes value]))}]
    }

    proc connection {k} {
        global ns sender receiver pair_of sink_of
        set tcp [new Agent/TCP/Sack1]
        set sink [new Agent/TCPSink/Sack1]
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
        global idle pair_of finished
        incr finished
        lappend idle($pair_of($self)) $self
    }
    $ns at 0 arrive
} elseif {$o(gen) eq "packmime"} {
    for {set k 0} {$k < $o(pairs)} {incr k} {
        set pm [new PackMimeHTTP]
        $pm set-TCP Sack
        $pm set-server $sender($k)
        $pm set-client $receiver($k)
        $pm set-rate [expr {double($o(cps)) / $o(pairs)}]
        $pm set-flow_arrive [variable_of Exponential $rng avg_ [expr {double($o(pairs)) / $o(cps)}]]
        $pm set-req_size [variable_of Constant $rng val_ 300]
        $pm set-rsp_size [variable_of Pareto $rng avg_ $o(mean_bytes) shape_ $o(shape)]
        $pm set-server_delay [variable_of Constant $rng val_ 0]
        $ns at 0 "$pm start"
        lappend packmimes $pm
    }
} else {
    puts stderr "gen=$o(gen): expected pool or packmime"
    exit 2
}

proc totals {} {
    global started finished packmimes
    set done $finished
    if {[info exists packmimes]} {
        foreach pm $packmimes { incr done [$pm get-pairs] }
    }
    return [dict create finished $done]
}

proc derived {d span} {
    global o
    return [list generator '$o(gen)' transfers_per_s [expr {[dict get $d finished] / $span}]]
}
measure web totals derived
