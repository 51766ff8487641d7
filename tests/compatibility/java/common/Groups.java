import java.util.Collections;
import java.util.Map;
import java.util.TreeSet;

/** Several members of one group. */
final class Groups {
    static void into(Map<String, Driver.Feature> features) {
        features.put("group-classic", cell -> shared(cell));
        features.put("group-848", cell -> shared(cell, "group.protocol", "consumer"));
        features.put("cooperative", Groups::cooperative);
        features.put("static-member", Groups::staticMember);
        features.put("rebalance-listener", Groups::rebalanceListener);
    }

    static Map<String, Object> shared(Cell cell, String... pairs) throws Exception {
        try (Member one = new Member(cell, pairs); Member two = new Member(cell, pairs); Member three = new Member(cell, pairs)) {
            Cell.await("two partitions for each", () -> failed(one, two, three) || one.owned == 2 && two.owned == 2 && three.owned == 2);
            Cell.await("all records", () -> failed(one, two, three) || distinct(one, two, three) == 60);
        }
        return Collections.emptyMap();
    }

    static boolean failed(Member... members) {
        for (Member member : members) Cell.expect(member.problem == null, member.problem);
        return false;
    }

    static int distinct(Member... members) {
        TreeSet<String> read = new TreeSet<>();
        for (Member member : members) read.addAll(member.read);
        return read.size();
    }

    static Map<String, Object> cooperative(Cell cell) throws Exception {
        String[] pairs = {"partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"};
        try (Member first = new Member(cell, pairs)) {
            Cell.await("all four", () -> failed(first) || first.owned == 4);
            try (Member second = new Member(cell, pairs)) {
                Cell.await("two for each", () -> failed(first, second) || first.owned == 2 && second.owned == 2);
                Cell.expectEqual(2, first.revoked.get(), "partitions taken from the first");
            }
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> staticMember(Cell cell) throws Exception {
        String[] pairs = {"group.instance.id", "fixed", "session.timeout.ms", "120000"};
        try (Member member = new Member(cell, pairs)) {
            Cell.await("all records", () -> failed(member) || member.read.size() == 10);
        }
        long started = System.currentTimeMillis();
        try (Member again = new Member(cell, pairs)) {
            Cell.await("its partition back", () -> failed(again) || again.owned == 1);
        }
        return Cell.said("back_ms", System.currentTimeMillis() - started);
    }

    static Map<String, Object> rebalanceListener(Cell cell) throws Exception {
        String[] pairs = {"partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor"};
        try (Member first = new Member(cell, pairs)) {
            Cell.await("onPartitionsAssigned with four", () -> failed(first) || first.assigned.get() == 4);
            try (Member second = new Member(cell, pairs)) {
                Cell.await("two for each", () -> failed(first, second) || first.owned == 2 && second.owned == 2);
            }
            Cell.expect(first.revoked.get() >= 4, "an eager member gives up everything: " + first.revoked.get());
        }
        return Collections.emptyMap();
    }
}
