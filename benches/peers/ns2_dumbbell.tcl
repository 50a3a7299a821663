# The dumbbell that ns2_bulk.tcl and ns2_web.tcl share: options, topology, disciplines and the measurement, for ns-2.35.
#
# `pairs` pairs of a sender and a receiver on access links of their own, one bottleneck. The round-trip propagation times of the
# pairs are spaced evenly from rttmin to rttmax, both ends included.
#
# What is measured, from `warmup` to `time`, at the bottleneck in the direction of the data:
#   utilisation         bits whose transmission began / (rate * window)
#   loss_ratio          packets dropped / packets that arrived at the queue
#   queue_mean_packets  time average of the packets waiting. ns-2 takes a packet out of the queue when its transmission begins,
#                       so the packet in service is not counted: neither here nor in the discipline's own queue length.
#   queue_delay_mean_s  arrival to beginning of transmission, mean over packets
# With mon=0 nothing is measured at the bottleneck: the form to take the time of.

# Milliseconds, megabits a second, packets, seconds. th to bottom are RED's and, with adaptive=1, Adaptive RED's, qref to w PI's,
# pbo to pupd REM's; buckets is SFQ's and DRR's, quantum (bytes) DRR's; mred to wdiff are RIO's, which ns-2 has as aqm=dsRED.
# shuffle=1 numbers the nodes by chance. Not called opt: ns keeps an array of its own under that name.
array set o {
    aqm DropTail pairs 100 rate 100 access 1000 delay 1 qlen 240 rttmin 10 rttmax 150
    pkt 1500 iw 2 window 100000 minrto 0.2 ecn 0
    warmup 20 time 120 seed 1 mon 1 sched Calendar mean 1500
    th 60 maxth 180 gentle 1 wq 0.002 linterm 10 wait 1 markp 0.1
    adaptive 0 targetdelay 0.005 interval 0.5 alpha 0.01 beta 0.9 top 0.5 bottom 0
    qref 120 a 0.00001822 b 0.00001816 w 170
    pbo 120 gamma 0.001 phi 1.001 inw 1 pupd 0.002
    buckets 16 quantum 1500
    mred RIO-C profile 0.5 inmin 120 inmax 210 inp 0.02 outmin 30 outmax 90 outp 0.2 wdiff 0.002
    shuffle 0
}

# Reads key=value words over the defaults above and those the script adds.
proc options {more words} {
    global o
    array set o $more
    foreach word $words {
        if {![regexp {^(\w+)=(.*)$} $word - key value] || ![info exists o($key)]} {
            puts stderr "'$word': expected key=value with one of: [lsort [array names o]]"
            exit 2
        }
        set o($key) $value
    }
}

# The simulator with its random numbers and the parameters of TCP and of the disciplines. Returns a generator for the workload.
proc prepare {} {
    global o ns defaultRNG tcl_precision
    # Only the headers in use: a packet of ns-2 otherwise carries those of every protocol it knows.
    remove-all-packet-headers
    add-packet-header IP TCP Flags
    set tcl_precision 12
    set ns [new Simulator]
    $ns use-scheduler $o(sched)
    # One substream a replication, which are independent by construction; those of neighbouring seeds are not, because the
    # generator is linear.
    set workload [new RNG]
    for {set i 1} {$i < $o(seed)} {incr i} {
        $defaultRNG next-substream
        $workload next-substream
    }

    # packetSize_ is the payload: the sender adds 40 bytes of headers to it. An ACK is 40 bytes and 8 more for each SACK block.
    Agent/TCP set packetSize_ [expr {$o(pkt) - 40}]
    Agent/TCP set windowInit_ $o(iw)
    Agent/TCP set window_ $o(window)
    Agent/TCP set minrto_ $o(minrto)
    Agent/TCP set ecn_ $o(ecn)

    Queue/RED set mean_pktsize_ $o(mean)
    Queue/RED set bytes_ false
    Queue/RED set queue_in_bytes_ false
    Queue/RED set adaptive_ $o(adaptive)
    Queue/RED set targetdelay_ $o(targetdelay)
    Queue/RED set interval_ $o(interval)
    Queue/RED set alpha_ $o(alpha)
    Queue/RED set beta_ $o(beta)
    Queue/RED set top_ $o(top)
    Queue/RED set bottom_ $o(bottom)
    Queue/RED set thresh_ $o(th)
    Queue/RED set maxthresh_ $o(maxth)
    Queue/RED set gentle_ $o(gentle)
    Queue/RED set q_weight_ $o(wq)
    Queue/RED set linterm_ $o(linterm)
    Queue/RED set wait_ $o(wait)
    Queue/RED set mark_p_ $o(markp)
    Queue/RED set setbit_ $o(ecn)

    Queue/PI set mean_pktsize_ $o(mean)
    Queue/PI set bytes_ false
    Queue/PI set queue_in_bytes_ false
    Queue/PI set qref_ $o(qref)
    Queue/PI set a_ $o(a)
    Queue/PI set b_ $o(b)
    Queue/PI set w_ $o(w)
    Queue/PI set setbit_ $o(ecn)

    # mean_pktsize_ turns the link's rate into packets: with ns-2's own 1000 and packets of 1500 bytes the price would settle
    # where the queue is 83 packets above pbo_, ten times what the rate is mistaken by in an update interval.
    Queue/REM set mean_pktsize_ $o(mean)
    Queue/REM set qib_ false
    Queue/REM set pbo_ $o(pbo)
    Queue/REM set gamma_ $o(gamma)
    Queue/REM set phi_ $o(phi)
    Queue/REM set inw_ $o(inw)
    Queue/REM set pupdtime_ $o(pupd)
    Queue/REM set markpkts_ $o(ecn)

    # Their limits are their own: the link's queue-limit means nothing to these two.
    Queue/SFQ set maxqueue_ $o(qlen)
    Queue/SFQ set buckets_ $o(buckets)
    Queue/DRR set blimit_ [expr {$o(qlen) * $o(pkt)}]
    Queue/DRR set buckets_ $o(buckets)
    Queue/DRR set quantum_ $o(quantum)
    return $workload
}

# Builds nodes and links; pair k is sender(k), receiver(k).
proc dumbbell {pairs} {
    global o ns left right sender receiver
    set left [$ns node]
    set right [$ns node]
    if {$o(aqm) eq "dsRED"} {
        $ns simplex-link $left $right $o(rate)Mb $o(delay)ms dsRED/core
        $ns simplex-link $right $left $o(rate)Mb $o(delay)ms DropTail
        two_reds [[$ns link $left $right] queue] $o(mean) $o(inmin) $o(inmax) $o(outmin) $o(outmax)
    } else {
        $ns duplex-link $left $right $o(rate)Mb $o(delay)ms $o(aqm)
    }
    $ns queue-limit $left $right $o(qlen)
    $ns queue-limit $right $left $o(qlen)
    make_hosts $pairs
    for {set k 0} {$k < $pairs} {incr k} {
        set rtt [expr {$o(rttmin) + double($o(rttmax) - $o(rttmin)) * $k / max(1, $pairs - 1)}]
        set each [expr {($rtt / 2 - $o(delay)) / 2}]
        access_link $sender($k) $left $each [expr {$o(aqm) eq "dsRED" ? "dsRED/edge" : "DropTail"}]
        access_link $right $receiver($k) $each DropTail
        if {$o(aqm) eq "dsRED"} { meter $k }
    }
}

# The hosts. SFQ hashes the sum of two addresses, which are the nodes' numbers: with shuffle=1 chance decides which flows meet.
proc make_hosts {pairs} {
    global o ns sender receiver
    set places {}
    for {set k 0} {$k < $pairs} {incr k} { lappend places [list sender $k] [list receiver $k] }
    if {$o(shuffle)} {
        set dice [new RNG]
        for {set i 1} {$i < $o(seed)} {incr i} { $dice next-substream }
        for {set i [expr {[llength $places] - 1}]} {$i > 0} {incr i -1} {
            set j [expr {int([$dice uniform 0 [expr {$i + 1}]])}]
            set other [lindex $places $j]
            lset places $j [lindex $places $i]
            lset places $i $other
        }
    }
    foreach place $places { set [lindex $place 0]([lindex $place 1]) [$ns node] }
}

# RIO after Clark and Fang: a time sliding window of 1 s at each sender tags what is beyond the profile OUT, code point 11.
proc meter {k} {
    global ns o left sender receiver
    set q [[$ns link $sender($k) $left] queue]
    # Thresholds that no queue reaches, and packets so large that no idle time is many of them: it would only cost time.
    two_reds $q 100000000 1000000 2000000 1000000 2000000
    $q addPolicyEntry [$sender($k) id] [$receiver($k) id] TSW2CM 10 [expr {$o(profile) * 1e6}]
    $q addPolicerEntry TSW2CM 10 11
}

# One queue with two REDs. ns-2's module reads thresholds as whole packets; it neither waits nor is it gentle.
proc two_reds {q mean inmin inmax outmin outmax} {
    global o
    $q meanPktSize $mean
    $q set numQueues_ 1
    $q setNumPrec 2
    $q setMREDMode $o(mred) 0
    $q addPHBEntry 10 0 0
    $q addPHBEntry 11 0 1
    $q configQ 0 0 $inmin $inmax $o(inp) $o(wdiff)
    $q configQ 0 1 $outmin $outmax $o(outp) $o(wdiff)
}

proc access_link {from to delay_ms queue} {
    global ns o
    $ns simplex-link $from $to $o(access)Mb ${delay_ms}ms $queue
    $ns simplex-link $to $from $o(access)Mb ${delay_ms}ms DropTail
    # Deep enough never to drop: the bottleneck is the only place of loss.
    $ns queue-limit $from $to 100000
    $ns queue-limit $to $from 100000
}

# Measures from warmup to time, prints the JSON and ends. `extra` is called at both ends of the window and returns a dictionary
# of counters; their differences are printed too, after `derived` has seen them.
proc measure {workload extra derived} {
    global o ns left right forward reverse area delays bytes bytes_seen
    if {$o(mon)} {
        set forward [$ns monitor-queue $left $right ""]
        set reverse [$ns monitor-queue $right $left ""]
        set area [$forward get-pkts-integrator]
        set delays [new Samples]
        $forward set-delay-samples $delays
        set bytes 0
        set bytes_seen 0
        every_second
    }
    $ns at $o(warmup) [list begin $extra]
    $ns at $o(time) [list finish $workload $extra $derived]
    $ns run
}

# bdepartures_ is 32 bits wide and passes its end after 340 s at 100 Mb/s: it is added up once a second.
proc every_second {} {
    global ns
    count_bytes
    $ns after 1.0 every_second
}

proc count_bytes {} {
    global forward bytes bytes_seen
    set seen [$forward set bdepartures_]
    incr bytes [expr {($seen - $bytes_seen) & 0xffffffff}]
    set bytes_seen $seen
}

# All counters run from the start of the simulation: a window is the difference of two readings.
proc reading {extra} {
    global ns o forward reverse area bytes
    set r [$extra]
    if {$o(mon)} {
        count_bytes
        dict set r bytes $bytes
        # The integral holds the area up to the last change of the queue: bring it up to now.
        $area newpoint [$ns now] [$forward set pkts_]
        dict set r area [$area set sum_]
        foreach {key monitor counter} [list \
                arrivals $forward parrivals_ drops $forward pdrops_ marks $forward pmarks_ departures $forward pdepartures_ \
                back_departures $reverse pdepartures_ back_drops $reverse pdrops_] {
            dict set r $key [$monitor set $counter]
        }
    }
    return $r
}

proc begin {extra} {
    global o delays first
    set first [reading $extra]
    if {$o(mon)} { $delays reset }
}

proc finish {workload extra derived} {
    global o delays first
    set last [reading $extra]
    set d [dict create]
    dict for {key value} $last { dict set d $key [expr {$value - [dict get $first $key]}] }
    set span [expr {double($o(time) - $o(warmup))}]
    set out [list simulator '[ns-version]' workload '$workload' aqm '$o(aqm)' seed $o(seed) warmup_s $o(warmup) measured_s $span]
    if {$o(mon)} {
        dict with d {
            lappend out utilisation [expr {$bytes * 8.0 / ($o(rate) * 1e6 * $span)}] \
                loss_ratio [expr {double($drops) / max(1, $arrivals)}] \
                mark_ratio [expr {double($marks) / max(1, $arrivals)}] \
                queue_mean_packets [expr {$area / $span}] \
                queue_delay_mean_s [expr {[$delays cnt] ? [$delays mean] : "null"}] \
                arrivals $arrivals drops $drops departures $departures \
                reverse_departures $back_departures reverse_drops $back_drops
        }
        # Of the whole run, both directions: what the time of a run is divided by.
        lappend out run_departures [expr {[dict get $last departures] + [dict get $last back_departures]}]
    }
    foreach {key value} [concat $out [$derived $d $span]] { lappend text "\"$key\": [string map {' \"} $value]" }
    puts "{[join $text {, }]}"
    exit 0
}
