# The checks of the suite `model`, sourced by script/suites/model: name, compiler flags, run flags, macros, expected message.

check_every_interleaving_of_three_machines_keeps_the_promises() { holds safety "-DSAFETY" "" ""; }
check_no_execution_goes_on_for_ever() { holds ending "-DNP" "-l" ""; }
small="-DOUTSIDE=1 -DSTALLS=1 -DCRASHES=1 -DREPEATS=0 -DRELEASES=0"
check_a_failure_that_the_app_writes_keeps_the_promises() { holds outside "-DSAFETY" "" "$small"; }
check_without_blame_for_that_failure_the_model_breaks() { breaks no_blame "-DSAFETY" "" "$small -DNO_BLAME" "blamed>>me"; }
check_without_the_attempt_number_the_model_breaks() { breaks no_fence "-DSAFETY" "" "-DNO_FENCE" "==attempt)&&(holder==me)"; }
check_with_the_time_of_the_claim_alone_an_old_run_writes() { breaks locked_at "-DSAFETY" "" "$small -DLOCKED_AT_ONLY" "==attempt)&&(holder==me)"; }
check_with_the_time_of_the_claim_alone_the_other_promises_stay() { holds locked_at_kept "-DSAFETY" "" "$small -DLOCKED_AT_ONLY -DKEPT_ONLY"; }
check_without_the_machine_id_the_model_breaks() { breaks no_owner "-DSAFETY" "" "-DNO_OWNER" "==attempt)&&(holder==me)"; }
check_without_attempted_by_the_model_breaks() { breaks no_attempted "-DSAFETY" "" "-DNO_ATTEMPTED" "attempted_by>>me"; }
check_without_quarantine_the_model_breaks() { breaks no_quarantine "-DSAFETY" "" "-DNO_QUARANTINE" "failures<3"; }
check_without_the_sweep_the_model_breaks() { breaks no_sweep "-DSAFETY" "" "-DNO_SWEEP" "is_one_left"; }

for check in $(compgen -A function check_ | sed 's/^check_//'); do
    eval "inputs_$check() { printf 'tests/model\tscript/suites/model'; }"
done

# shellcheck disable=SC2046
run_checks model $(compgen -A function check_ | sed 's/^check_//')
