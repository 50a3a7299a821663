# Long TCP flows over several bottlenecks in a row, a parking lot, in ns-2.35; parking.py has its counterparts.
#
#   ns ns2_parking.tcl hops=DropTail,RED,DropTail rates=20,15,20 key=value ...       prints one line of JSON
#
# Routers n0, n1, ... are joined by hops; `hops` has the discipline of each towards the right, `rates` its Mb/s in both
# directions. Towards the left they are drop-tail. `long` flows go over all hops, `cross` of each hop over that one alone, to the
# right, and `back` of each hop to the left. Every flow has two hosts of its own. Of its round-trip propagation time, hopdelay each
# way on every hop it passes and, beside that, a time of its own: those of the flows of a group are spaced evenly from rttmin to
# rttmax; half of it lies behind each host's access link. `limits` has the limit of each hop; that of ns-2's DropTail admits one less.
# Beside the cross flows every hop has `transfers` a second, at random instants, of `packets` packets each: one-way agents from a
# pool, as in ns2_transfers.tcl, with an own round-trip time of `transferrtt`.
#
# What is measured at every hop, in the direction of the flows, is what ns2_dumbbell.tcl measures at its one.
source [file join [file dirname [info script]] ns2_dumbbell.tcl]
options {
    hops DropTail,DropTail,DropTail rates 20,20,20 limits 120,120,120 hopdelay 10
    long 10 cross 10,10,10 back 0,0,0 start 1.0 cc Sack1 rttmin 10 rttmax 50
    transfers 0,0,0 packets 20 transferrtt 30
} $argv
set starts [prepare]
foreach key {hops rates limits cross back transfers} { set $key [split $o($key) ,] }

set routers [list [$ns node]]
set number 0
foreach aqm $hops rate $rates limit $limits {
    lappend routers [$ns node]
    foreach {from to kind} [list $number [expr {$number + 1}] $aqm [expr {$number + 1}] $number DropTail] {
        $ns simplex-link [lindex $routers $from] [lindex $routers $to] ${rate}Mb $o(hopdelay)ms $kind
        $ns queue-limit [lindex $routers $from] [lindex $routers $to] $limit
    }
    incr number
}

# A host behind a router: what it sends waits `delay` milliseconds behind its access link, what it gets does not.
proc host {router delay} {
    global ns o
    set node [$ns node]
    $ns simplex-link $node $router $o(access)Mb ${delay}ms DropTail
    $ns simplex-link $router $node $o(access)Mb 0ms DropTail
    $ns queue-limit $node $router 100000
    $ns queue-limit $router $node 100000
    return $node
}

# A sender and a receiver at two hosts.
proc connection {source destination} {
    global ns o
    set tcp [new Agent/TCP/$o(cc)]
    set sink [new Agent/TCPSink[expr {$o(cc) eq "Sack1" ? "/Sack1" : ""}]]
    $ns attach-agent $source $tcp
    $ns attach-agent $destination $sink
    $ns connect $tcp $sink
    return [list $tcp $sink]
}

set tcps {}
# Flows between the routers of two numbers.
proc flows {count from to} {
    global ns o routers starts tcps
    for {set k 0} {$k < $count} {incr k} {
        set rtt [expr {$o(rttmin) + double($o(rttmax) - $o(rttmin)) * $k / max(1, $count - 1)}]
        set source [host [lindex $routers $from] [expr {$rtt / 2}]]
        set tcp [lindex [connection $source [host [lindex $routers $to] [expr {$rtt / 2}]]] 0]
        $tcp set fid_ [llength $tcps]
        set ftp [new Application/FTP]
        $ftp attach-agent $tcp
        $ns at [$starts uniform 0 $o(start)] "$ftp start"
        lappend tcps $tcp
    }
}
# The next transfer over a hop, at a random instant.
proc await {hop} {
    global ns starts transfers
    $ns after [$starts exponential [expr {1.0 / [lindex $transfers $hop]}]] "arrive $hop"
}

proc arrive {hop} {
    global o idle ends hop_of sink_of
    if {[llength $idle($hop)]} {
        set tcp [lindex $idle($hop) end]
        set idle($hop) [lreplace $idle($hop) end end]
        $tcp reset
        $sink_of($tcp) reset
        # The loss of a first packet lowers it for good.
        $tcp set windowInit_ $o(iw)
    } else {
        foreach {tcp sink} [connection {*}$ends($hop)] {}
        # Beyond the numbers of the long and the cross flows.
        $tcp set fid_ [expr {100000 + [array size hop_of]}]
        set hop_of($tcp) $hop
        set sink_of($tcp) $sink
    }
    $tcp advance $o(packets)
    await $hop
}

# ns-2 calls this when the last packet of a transfer is acknowledged.
Agent/TCP instproc done {} {
    global idle hop_of
    if {[info exists hop_of($self)]} { lappend idle($hop_of($self)) $self }
}

flows $o(long) 0 [llength $hops]
for {set hop 0} {$hop < [llength $hops]} {incr hop} {
    flows [lindex $cross $hop] $hop [expr {$hop + 1}]
    flows [lindex $back $hop] [expr {$hop + 1}] $hop
    set idle($hop) {}
    if {[lindex $transfers $hop]} {
        set ends($hop) {}
        foreach at [list $hop [expr {$hop + 1}]] {
            lappend ends($hop) [host [lindex $routers $at] [expr {$o(transferrtt) / 2.0}]]
        }
        await $hop
    }
}

# What a queue has done so far. Its bytes are a counter of 32 bits: a window must be shorter than 4.29e9 of them.
proc reading {monitor} {
    global ns
    set area [$monitor get-pkts-integrator]
    # The integral holds the area up to the last change of the queue: bring it up to now.
    $area newpoint [$ns now] [$monitor set pkts_]
    set r [dict create area [$area set sum_]]
    foreach counter {bdepartures_ parrivals_ pdrops_ pdepartures_} { dict set r $counter [$monitor set $counter] }
    return $r
}

for {set hop 0} {$hop < [llength $hops]} {incr hop} {
    set left [lindex $routers $hop]
    set right [lindex $routers [expr {$hop + 1}]]
    foreach {way from to} [list forward $left $right reverse $right $left] {
        set monitors($hop,$way) [$ns monitor-queue $from $to ""]
    }
}

proc acked {} {
    global o tcps
    set sum 0
    for {set i 0} {$i < $o(long)} {incr i} { incr sum [[lindex $tcps $i] set ack_] }
    return $sum
}

proc begin {} {
    global monitors first first_acked
    foreach key [array names monitors] { set first($key) [reading $monitors($key)] }
    set first_acked [acked]
}

proc finish {} {
    global o monitors first first_acked hops rates
    set span [expr {double($o(time) - $o(warmup))}]
    for {set hop 0} {$hop < [llength $hops]} {incr hop} {
        set ways {}
        foreach way {forward reverse} {
            set last [reading $monitors($hop,$way)]
            dict for {key value} $last { set d($key) [expr {$value - [dict get $first($hop,$way) $key]}] }
            set bytes [expr {$d(bdepartures_) & 0xffffffff}]
            set utilisation [expr {$bytes * 8.0 / ([lindex $rates $hop] * 1e6 * $span)}]
            set loss [expr {double($d(pdrops_)) / max(1, $d(parrivals_))}]
            lappend ways "\"$way\": {\"utilisation\": $utilisation, \"loss_ratio\": $loss,\
                \"queue_mean_packets\": [expr {$d(area) / $span}], \"arrivals\": $d(parrivals_), \"drops\": $d(pdrops_)}"
        }
        lappend text "{[join $ways {, }]}"
    }
    set long [expr {([acked] - $first_acked) * 8.0 * ($o(pkt) - 40) / $span}]
    puts "{\"seed\": $o(seed), \"measured_s\": $span, \"long_goodput_bps\": $long, \"hops\": \[[join $text {, }]\]}"
    exit 0
}
$ns at $o(warmup) begin
$ns at $o(time) finish
$ns run
